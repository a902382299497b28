"""Formats the effective config with masked secrets and origins, and checks config files."""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path as FilePath
from typing import Any

import msgspec

from ostler.settings.config_files import ConfigFileError, read_config
from ostler.settings.effective import DEFAULT_ORIGIN, Settings
from ostler.settings.jsonc_parser import KeyPath
from ostler.settings.layers import Layer, rule_items
from ostler.settings.masking import mask_secrets
from ostler.settings.problems import Problem, SettingOrigin
from ostler.settings.secret import encode_masked
from ostler.settings.validate import validate

_INDENT = "  "


def format_settings(settings: Settings, *, with_origin: bool = False) -> str:
    """Format the effective settings as JSONC. Rules are a list in the order of all layers: the last match wins."""
    plain = mask_secrets(msgspec.to_builtins(settings.config, enc_hook=encode_masked))
    plain["provider"] |= plain.pop("providers")
    for name, agent in plain["agent"].items():
        agent["permission"] = [[rule.key, rule.pattern, rule.action] for rule in settings.rules(name)]
    writer = _ConfigWriter(settings, with_origin=with_origin)
    members = [*writer.rules(), *writer.members(_prune_empty(plain), (), _INDENT)]
    return "\n".join(["{", *_join_members(members), "}", ""])


def check_files(paths: Sequence[FilePath]) -> list[Problem]:
    """Return all problems of some config files. Unknown keys are errors here."""
    return [problem for path in paths for problem in _check_file(path)]


def _check_file(path: FilePath) -> list[Problem]:
    try:
        document = read_config(path)
    except ConfigFileError as error:
        return [error.problem]
    if document is None:
        return [Problem(str(path), 0, 0, "", "this file does not exist")]
    layer = Layer("explicit", document.file, validate(document.value), document)
    return list(layer.problems(strict=True))


class _ConfigWriter:
    """Writes object members as lists of lines; `_join_members` adds the commas between them."""

    def __init__(self, settings: Settings, *, with_origin: bool) -> None:
        self.settings = settings
        self.with_origin = with_origin

    def rules(self) -> Iterator[list[str]]:
        for name, restrict_only in (("permission", False), ("permission_of_untrusted_project", True)):
            rules = [
                [self._line(f"{_INDENT * 2}{_json([*rule, action])}", layer.origin(("permission", *rule)))]
                for layer in self.settings.layers
                if layer.restrict_only == restrict_only
                for rule, action in rule_items(layer.value.get("permission"))
            ]
            if rules:
                yield [f'{_INDENT}"{name}": [', *_join_members(rules), f"{_INDENT}]"]

    def members(self, value: dict[str, Any], path: KeyPath, indent: str) -> Iterator[list[str]]:
        for key, inner in value.items():
            yield self._value(f"{indent}{_json(key)}: ", inner, (*path, key), indent)

    def _value(self, lead: str, value: Any, path: KeyPath, indent: str) -> list[str]:
        if isinstance(value, dict):
            return [f"{lead}{{", *_join_members(self.members(value, path, indent + _INDENT)), f"{indent}}}"]
        if isinstance(value, list) and any(isinstance(item, dict) for item in value):
            items = [
                self._value(indent + _INDENT, item, (*path, item.get("name", number)), indent + _INDENT)
                for number, item in enumerate(value)
            ]
            return [f"{lead}[", *_join_members(items), f"{indent}]"]
        return [self._line(f"{lead}{_json(value)}", self._origin(path))]

    def _origin(self, path: KeyPath) -> SettingOrigin:
        if path[0] == "provider" and path[1] in self.settings.config.providers:
            path = ("providers", *path[1:])
        return self.settings.origin(path)

    def _line(self, text: str, origin: SettingOrigin) -> str:
        """Return a line, a NUL (which JSON text cannot contain) and its comment."""
        comment = str(origin) if origin == DEFAULT_ORIGIN else f"from {origin}"
        return f"{text}\0  // {_escape_unprintable(comment)}" if self.with_origin else f"{text}\0"


def _join_members(members: Iterable[list[str]]) -> list[str]:
    """Flatten the members to lines; each comma goes before the comment of its line."""
    all_members = list(members)
    for member in all_members[:-1]:
        text, mark, comment = member[-1].partition("\0")
        member[-1] = f"{text},{mark}{comment}"
    return [line.replace("\0", "") for member in all_members for line in member]


def _prune_empty(value: Any) -> Any:
    """Remove empty members: they are unset and have no effect."""
    if isinstance(value, list):
        return [_prune_empty(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    members = {key: _prune_empty(inner) for key, inner in value.items()}
    return {key: inner for key, inner in members.items() if inner not in (None, "", {}, [])}


def _json(value: Any) -> str:
    return _escape_unprintable(json.dumps(value, ensure_ascii=False))


def _escape_unprintable(text: str) -> str:
    """Escape control and invisible characters."""
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)
