"""Describes schema types in words and checks values against them."""

from collections.abc import Iterable
from typing import Any

from msgspec import inspect as types

from ostler.settings.problems import quote_value

# How a type is called, and the Python types of its JSON values.
_TYPES: dict[type, tuple[str, tuple[type, ...]]] = {
    types.StrType: ("text", (str,)),
    types.CustomType: ("text", (str,)),
    types.LiteralType: ("a value", (str,)),
    types.IntType: ("a whole number", (int,)),
    types.FloatType: ("a number", (int, float)),
    types.BoolType: ("true or false", (bool,)),
    types.NoneType: ("null", (type(None),)),
    types.StructType: ("an object", (dict,)),
    types.DictType: ("an object", (dict,)),
    types.VarTupleType: ("an array", (list,)),
}
_ANY_TYPE = ("a value", (object,))


def has_json_type(value: object, kind: types.Type) -> bool:
    """Return whether a value has the JSON type of a schema type; members and bounds are not checked."""
    if isinstance(value, bool) and not isinstance(kind, types.BoolType):
        return False
    return isinstance(value, _TYPES.get(type(kind), _ANY_TYPE)[1])


def is_in_bounds(value: Any, kind: types.Type) -> bool:
    """Return whether a value of the right type is within the type's bounds."""
    if isinstance(kind, types.IntType | types.FloatType):
        return (
            (kind.ge is None or value >= kind.ge)
            and (kind.gt is None or value > kind.gt)
            and (kind.le is None or value <= kind.le)
        )
    if isinstance(kind, types.StrType | types.VarTupleType):
        return kind.min_length is None or len(value) >= kind.min_length
    return True


def describe_type(kind: types.Type) -> str:
    """Describe a type, such as `text`, `a whole number of at least 1` or `"a", "b" or an object`."""
    return _join_alternatives(list(dict.fromkeys(_type_phrases(kind))))


def _type_phrases(kind: types.Type) -> list[str]:
    if isinstance(kind, types.UnionType):
        return [word for option in kind.types if type(option) is not types.NoneType for word in _type_phrases(option)]
    if isinstance(kind, types.LiteralType):
        return [quote_value(value) for value in kind.values]
    return [_TYPES.get(type(kind), _ANY_TYPE)[0] + _describe_bounds(kind)]


def _join_alternatives(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _describe_bounds(kind: types.Type) -> str:
    if isinstance(kind, types.StrType | types.VarTupleType) and kind.min_length:
        return " that is not empty"
    if not isinstance(kind, types.IntType | types.FloatType):
        return ""
    if kind.gt is not None:
        return f" above {kind.gt:g}" + (f" and up to {kind.le:g}" if kind.le is not None else "")
    if kind.le is None:
        return f" of at least {kind.ge:g}" if kind.ge is not None else ""
    return f" from {kind.ge:g} to {kind.le:g}" if kind.ge is not None else f" to {kind.le:g}"


def describe_value(value: object) -> str:
    """Describe the type of a JSON value without showing the value."""
    for kind, word in (
        (bool, "true or false"),
        (str, "text"),
        (int, "a number"),
        (float, "a fraction"),
        (list, "an array"),
        (dict, "an object"),
    ):
        if isinstance(value, kind):
            return word
    return "null"


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean "x"?` for the closest known name, or an empty string."""
    from ostler.text.closest_name import closest_name

    closest = closest_name(word, known)
    return f"; did you mean {quote_value(closest)}?" if closest else ""
