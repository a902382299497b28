"""Hold a parsed file against the schema: all problems at once, and what it says under our own names."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

import msgspec
from msgspec import inspect as types

from ostler.settings.located import Path
from ostler.settings.problems import quoted
from ostler.settings.schema import ConfigFile
from ostler.settings.schema_models import NamedProvider, Provider, Section
from ostler.settings.secret import from_plain
from ostler.settings.shapes import fits, guess, sort_of, wanted, within

# A file may be all mistakes: so many guesses are made, and so many unknown keys named.
MAX_GUESSES = 30
MAX_UNKNOWN = 100


class Flaw(msgspec.Struct, frozen=True):
    """A problem that does not know its file yet: the path as it is written, and what is wrong there."""

    path: Path
    message: str
    unknown_key: bool = False


class Checked(msgspec.Struct, frozen=True):
    """What a file says in our own names; to be used only when all flaws are unknown keys.

    `moved` leads from a path of ours to the path in the file, where they differ.
    """

    value: dict[str, Any]
    flaws: tuple[Flaw, ...] = ()
    moved: Mapping[Path, Path] = {}

    def written(self, path: Path) -> Path:
        """The path in the file for a path of ours."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.moved:
                return self.moved[path[:length]] + path[length:]
        return path


class _Member(NamedTuple):
    """A known member of an object: our name, its value and type, and the path as written."""

    name: str
    value: Any
    kind: types.Type
    at: Path


def validate(value: object) -> Checked:
    """Check one file's value. A file that is right in every way costs one conversion."""
    if not isinstance(value, dict):
        return Checked({}, (Flaw((), f"the config must be an object, not {sort_of(value)}"),))
    try:
        msgspec.convert(value, ConfigFile, dec_hook=from_plain)
    except msgspec.ValidationError:
        return _Examiner().examine(value)
    return Checked(value, tuple(_repeated_profiles(value)))


class _Examiner:
    """Walks a value and its type side by side; `at` is the path as written, `to` the path in our names."""

    def __init__(self) -> None:
        self.flaws: list[Flaw] = []
        self.moved: dict[Path, Path] = {}
        self.guesses = 0
        self.unknown = 0

    def examine(self, value: dict[str, Any]) -> Checked:
        config = self._visit(value, _shape(ConfigFile), (), ())
        if all(flaw.unknown_key for flaw in self.flaws):
            self.flaws.extend(_repeated_profiles(config))
        return Checked(config, tuple(self.flaws), self.moved)

    def _visit(self, value: Any, kind: types.Type, at: Path, to: Path) -> Any:
        if isinstance(kind, types.UnionType):
            kind = next((option for option in kind.types if fits(value, option)), kind)
        if isinstance(kind, types.UnionType) or not fits(value, kind):
            self._flaw(at, f"must be {wanted(kind)}, not {sort_of(value)}")
        elif isinstance(kind, types.LiteralType) and value not in kind.values:
            self._flaw(at, f"must be {wanted(kind)}, not {quoted(value)}{self._guess(value, map(str, kind.values))}")
        elif not within(value, kind):
            self._flaw(at, f"must be {wanted(kind)}")
        elif isinstance(kind, types.StructType):
            return self._struct(value, kind, at, to)
        elif isinstance(kind, types.DictType):
            return {key: self._visit(inner, kind.value_type, (*at, key), (*to, key)) for key, inner in value.items()}
        elif isinstance(kind, types.VarTupleType):
            return [self._visit(inner, kind.item_type, (*at, n), (*to, n)) for n, inner in enumerate(value)]
        return value

    def _struct(self, value: dict[str, Any], kind: types.StructType, at: Path, to: Path) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        for member in self._members(value, kind, at):
            place = (*to, member.name)
            if member.at != place:
                self.moved[place] = member.at
            usable = self._visit(member.value, member.kind, member.at, place)
            if member.name in kept:
                self._flaw(member.at, f"says again what {quoted(member.name)} says; remove one of them")
            kept[member.name] = usable
        for field in kind.fields:
            if field.required and field.encode_name not in kept:
                self._flaw(at, f"needs {quoted(field.encode_name)}")
        return kept

    def _members(self, value: dict[str, Any], kind: types.StructType, at: Path) -> Iterator[_Member]:
        """The members that the schema knows, whatever their spelling; the others become flaws."""
        fields = {field.encode_name: field.type for field in kind.fields}
        aliases = _aliases(kind)
        for key, inner in value.items():
            name, place = aliases.get(key, key), (*at, key)
            if kind.cls is ConfigFile and _is_other_form(key, inner):
                yield from _endpoints(key, inner, place)
            elif name in fields:
                yield _Member(name, inner, fields[name], place)
            else:
                self._unknown(place, key, [*fields, *aliases])

    def _unknown(self, at: Path, key: str, known: list[str]) -> None:
        self.unknown += 1
        if self.unknown <= MAX_UNKNOWN:
            message = f"is not a key that Ostler knows{self._guess(key, known)}"
            self.flaws.append(Flaw(at, message, unknown_key=True))

    def _guess(self, word: str, known: Iterable[str]) -> str:
        self.guesses += 1
        return guess(word, known) if self.guesses <= MAX_GUESSES else ""

    def _flaw(self, at: Path, message: str) -> None:
        self.flaws.append(Flaw(at, message))


def _repeated_profiles(config: Mapping[str, Any]) -> Iterator[Flaw]:
    """The same profile twice in one file: nobody can tell which one is meant."""
    seen: set[str] = set()
    for number, profile in enumerate(config.get("models", {}).get("profiles", ())):
        if profile["name"] in seen:
            message = f"has the name of a profile above, {quoted(profile['name'])}; rename one of them"
            yield Flaw(("models", "profiles", number), message)
        seen.add(profile["name"])


@cache
def _shape(section: type[Section]) -> types.StructType:
    found = types.type_info(section)
    assert isinstance(found, types.StructType)
    return found


def _aliases(kind: types.StructType) -> Mapping[str, str]:
    return kind.cls.aliases if issubclass(kind.cls, Section) else {}


def _is_other_form(key: str, value: object) -> bool:
    """Whether `provider` is a vendor's name or has providers by id, or `model` is an endpoint."""
    return isinstance(value, dict) if key == "model" else key == "provider" and isinstance(value, dict | str)


def _endpoints(key: str, value: Any, at: Path) -> Iterator[_Member]:
    """The other forms of `provider` and `model`, as the short form and as providers by id."""
    short = _shape(Provider)
    if isinstance(value, str):
        yield _Member("provider", {"name": value}, short, at)
        return
    ours = {field.encode_name for field in short.fields} | set(_aliases(short))
    by_id = {
        name for name, inner in value.items() if key == "provider" and name not in ours and isinstance(inner, dict)
    }
    if by_id:
        kind = types.DictType(types.StrType(), _shape(NamedProvider))
        yield _Member("providers", {name: value[name] for name in value if name in by_id}, kind, at)
    if len(by_id) < len(value):
        yield _Member("provider", {name: value[name] for name in value if name not in by_id}, short, at)
