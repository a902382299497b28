"""Validates a parsed config file against the schema and reports all problems at once."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

import msgspec
from msgspec import inspect as types

from ostler.settings.jsonc_parser import KeyPath
from ostler.settings.problems import quote_value
from ostler.settings.schema import ConfigFile
from ostler.settings.schema_models import ConfigSection, NamedProvider, Provider
from ostler.settings.secret import decode_secret
from ostler.settings.type_descriptions import describe_type, describe_value, has_json_type, is_in_bounds, suggestion

# Limits for files full of mistakes.
MAX_SUGGESTIONS = 30
MAX_UNKNOWN = 100


class SchemaViolation(msgspec.Struct, frozen=True):
    """A problem without its file: the path as written in the file, and what is wrong there."""

    path: KeyPath
    message: str
    unknown_key: bool = False


class ValidatedConfig(msgspec.Struct, frozen=True):
    """The values of a config file under canonical keys; usable only if all violations are unknown keys.

    `original_paths` maps a canonical path to the path in the file where they differ.
    """

    value: dict[str, Any]
    violations: tuple[SchemaViolation, ...] = ()
    original_paths: Mapping[KeyPath, KeyPath] = {}

    def original_path(self, path: KeyPath) -> KeyPath:
        """Return the path in the file for a canonical path."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.original_paths:
                return self.original_paths[path[:length]] + path[length:]
        return path


class _Member(NamedTuple):
    """A known member of an object: canonical name, value, type, and the path as written."""

    name: str
    value: Any
    kind: types.Type
    path: KeyPath


def validate(value: object) -> ValidatedConfig:
    """Validate the value of a config file. A valid file needs only one conversion."""
    if not isinstance(value, dict):
        return ValidatedConfig({}, (SchemaViolation((), f"the config must be an object, not {describe_value(value)}"),))
    try:
        msgspec.convert(value, ConfigFile, dec_hook=decode_secret)
    except msgspec.ValidationError:
        return _Validator().validate(value)
    return ValidatedConfig(value, (*_find_repeated_profiles(value), *_invalid_patterns(value)))


class _Validator:
    """Walks a value and its type in parallel; `path` is as written in the file, `config_path` is canonical."""

    def __init__(self) -> None:
        self.violations: list[SchemaViolation] = []
        self.original_paths: dict[KeyPath, KeyPath] = {}
        self.suggestion_count = 0
        self.unknown_count = 0

    def validate(self, value: dict[str, Any]) -> ValidatedConfig:
        config = self._visit(value, _struct_type(ConfigFile), (), ())
        if all(violation.unknown_key for violation in self.violations):
            self.violations.extend((*_find_repeated_profiles(config), *_invalid_patterns(config)))
        return ValidatedConfig(config, tuple(self.violations), self.original_paths)

    def _visit(self, value: Any, kind: types.Type, path: KeyPath, config_path: KeyPath) -> Any:
        if isinstance(kind, types.UnionType):
            kind = next((option for option in kind.types if has_json_type(value, option)), kind)
        if isinstance(kind, types.UnionType) or not has_json_type(value, kind):
            self._add_violation(path, f"must be {describe_type(kind)}, not {describe_value(value)}")
        elif isinstance(kind, types.LiteralType) and value not in kind.values:
            self._add_violation(
                path,
                f"must be {describe_type(kind)}, not {quote_value(value)}{self._suggest(value, map(str, kind.values))}",
            )
        elif not is_in_bounds(value, kind):
            self._add_violation(path, f"must be {describe_type(kind)}")
        elif isinstance(kind, types.StructType):
            return self._struct(value, kind, path, config_path)
        elif isinstance(kind, types.DictType):
            return {
                key: self._visit(inner, kind.value_type, (*path, key), (*config_path, key))
                for key, inner in value.items()
            }
        elif isinstance(kind, types.VarTupleType):
            return [self._visit(inner, kind.item_type, (*path, n), (*config_path, n)) for n, inner in enumerate(value)]
        return value

    def _struct(
        self, value: dict[str, Any], kind: types.StructType, path: KeyPath, config_path: KeyPath
    ) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for member in self._members(value, kind, path):
            member_path = (*config_path, member.name)
            if member.path != member_path:
                self.original_paths[member_path] = member.path
            converted = self._visit(member.value, member.kind, member.path, member_path)
            if member.name in result:
                self._add_violation(member.path, f"means the same as {quote_value(member.name)}; remove one of them")
            result[member.name] = converted
        for field in kind.fields:
            if field.required and field.encode_name not in result:
                self._add_violation(path, f"needs {quote_value(field.encode_name)}")
        return result

    def _members(self, value: dict[str, Any], kind: types.StructType, path: KeyPath) -> Iterator[_Member]:
        """Yield the known members, also under an alias or a former name; unknown keys become violations."""
        fields = {field.encode_name: field.type for field in kind.fields}
        renamed = _section(kind).renamed
        aliases = {**_section(kind).aliases, **renamed}
        for key, inner in value.items():
            name, member_path = aliases.get(key, key), (*path, key)
            if kind.cls is ConfigFile and _is_other_form(key, inner):
                yield from _endpoint_members(key, inner, member_path)
            elif key in renamed and renamed[key] in value:
                continue
            elif name in fields:
                yield _Member(name, inner, fields[name], member_path)
            else:
                self._add_unknown_key(member_path, key, [*fields, *aliases])

    def _add_unknown_key(self, path: KeyPath, key: str, known: list[str]) -> None:
        self.unknown_count += 1
        if self.unknown_count <= MAX_UNKNOWN:
            message = f"is not a known key{self._suggest(key, known)}"
            self.violations.append(SchemaViolation(path, message, unknown_key=True))

    def _suggest(self, word: str, known: Iterable[str]) -> str:
        self.suggestion_count += 1
        return suggestion(word, known) if self.suggestion_count <= MAX_SUGGESTIONS else ""

    def _add_violation(self, path: KeyPath, message: str) -> None:
        self.violations.append(SchemaViolation(path, message))


def _invalid_patterns(config: Mapping[str, Any]) -> Iterator[SchemaViolation]:
    """Yield the patterns that are not regular expressions, for example because they are wildcards."""
    import re

    security = config.get("security", {})
    for key in ("blacklist_patterns", "danger_patterns"):
        for number, pattern in enumerate(security.get(key, ())):
            try:
                re.compile(pattern)
            except (re.error, RecursionError, OverflowError) as error:
                message = f"is not a regular expression ({error}); write .* for any text"
                yield SchemaViolation(("security", key, number), message)
    for number, pattern in enumerate(config.get("context", {}).get("redact_patterns", ())):
        from ostler.text.redact import compile_pattern

        try:
            compile_pattern(pattern)
        except ValueError:
            message = "is not a regular expression in the syntax of RE2, which has no lookaheads and backreferences"
            yield SchemaViolation(("context", "redact_patterns", number), message)


def _find_repeated_profiles(config: Mapping[str, Any]) -> Iterator[SchemaViolation]:
    """Yield a violation for each profile whose name is already used in the same file."""
    seen: set[str] = set()
    for number, profile in enumerate(config.get("models", {}).get("profiles", ())):
        if profile["name"] in seen:
            message = f"has the same name as a profile above, {quote_value(profile['name'])}; rename one of them"
            yield SchemaViolation(("models", "profiles", number), message)
        seen.add(profile["name"])


@cache
def _struct_type(section: type[ConfigSection]) -> types.StructType:
    found = types.type_info(section)
    assert isinstance(found, types.StructType)
    return found


def _section(kind: types.StructType) -> type[ConfigSection]:
    assert issubclass(kind.cls, ConfigSection)
    return kind.cls


def _is_other_form(key: str, value: object) -> bool:
    """Return whether `provider` is a URL, a vendor's name or an object, or `model` is an endpoint."""
    return isinstance(value, dict) if key == "model" else key == "provider" and isinstance(value, dict | str)


def _endpoint_members(key: str, value: Any, path: KeyPath) -> Iterator[_Member]:
    """Convert the other forms of `provider` and `model` to the short form and to providers by id."""
    short = _struct_type(Provider)
    if isinstance(value, str):
        yield _Member("provider", {"base_url" if "://" in value else "name": value}, short, path)
        return
    known = {field.encode_name for field in short.fields} | set(Provider.aliases)
    by_id = {
        name for name, inner in value.items() if key == "provider" and name not in known and isinstance(inner, dict)
    }
    if by_id:
        kind = types.DictType(types.StrType(), _struct_type(NamedProvider))
        yield _Member("providers", {name: value[name] for name in value if name in by_id}, kind, path)
    if len(by_id) < len(value):
        yield _Member("provider", {name: value[name] for name in value if name not in by_id}, short, path)
