"""The effective config as text, with masked secrets and, if asked for, where each line comes from."""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path as FilePath
from typing import Any

import msgspec

from ostler.settings.effective import DEFAULT, Settings
from ostler.settings.files import BrokenFile, read_document
from ostler.settings.layers import Layer, rule_items
from ostler.settings.located import Path
from ostler.settings.masking import masked
from ostler.settings.problems import Origin, Problem
from ostler.settings.secret import to_plain
from ostler.settings.validate import validate

_TAB = "  "


def show(settings: Settings, *, origin: bool = False) -> str:
    """The settings in force as JSONC. Rules are a list, in their order over all layers: the last match wins."""
    plain = masked(msgspec.to_builtins(settings.config, enc_hook=to_plain))
    plain["provider"] |= plain.pop("providers")
    for name, agent in plain["agent"].items():
        agent["permission"] = [[rule.key, rule.pattern, rule.action] for rule in settings.rules(name)]
    writer = _Writer(settings, origin=origin)
    members = [*writer.rules(), *writer.members(_pruned(plain), (), _TAB)]
    return "\n".join(["{", *_joined(members), "}", ""])


def check(paths: Sequence[FilePath]) -> list[Problem]:
    """All that is wrong with some files; here an unknown key is an error too."""
    return [problem for path in paths for problem in _check(path)]


def _check(path: FilePath) -> list[Problem]:
    try:
        document = read_document(path)
    except BrokenFile as error:
        return [error.problem]
    if document is None:
        return [Problem(str(path), 0, 0, "", "there is no such file")]
    layer = Layer("explicit", document.file, validate(document.value), document)
    return list(layer.problems(strict=True))


class _Writer:
    """Writes members of objects as lists of lines; the comma between them comes later."""

    def __init__(self, settings: Settings, *, origin: bool) -> None:
        self.settings = settings
        self.with_origin = origin

    def rules(self) -> Iterator[list[str]]:
        for name, narrowing in (("permission", False), ("permission_of_untrusted_project", True)):
            rules = [
                [self._line(f"{_TAB * 2}{_json([*rule, action])}", layer.origin(("permission", *rule)))]
                for layer in self.settings.layers
                if layer.narrowing == narrowing
                for rule, action in rule_items(layer.value.get("permission"))
            ]
            if rules:
                yield [f'{_TAB}"{name}": [', *_joined(rules), f"{_TAB}]"]

    def members(self, value: dict[str, Any], path: Path, indent: str) -> Iterator[list[str]]:
        for key, inner in value.items():
            yield self._value(f"{indent}{_json(key)}: ", inner, (*path, key), indent)

    def _value(self, lead: str, value: Any, path: Path, indent: str) -> list[str]:
        if isinstance(value, dict):
            return [f"{lead}{{", *_joined(self.members(value, path, indent + _TAB)), f"{indent}}}"]
        if isinstance(value, list) and any(isinstance(item, dict) for item in value):
            items = [
                self._value(indent + _TAB, item, (*path, item.get("name", number)), indent + _TAB)
                for number, item in enumerate(value)
            ]
            return [f"{lead}[", *_joined(items), f"{indent}]"]
        return [self._line(f"{lead}{_json(value)}", self._origin(path))]

    def _origin(self, path: Path) -> Origin:
        if path[0] == "provider" and path[1] in self.settings.config.providers:
            path = ("providers", *path[1:])
        return self.settings.origin(path)

    def _line(self, text: str, origin: Origin) -> str:
        """A line and, after a mark that JSON text cannot have, its comment."""
        comment = str(origin) if origin == DEFAULT else f"from {origin}"
        return f"{text}\0  // {_printable(comment)}" if self.with_origin else f"{text}\0"


def _joined(members: Iterable[list[str]]) -> list[str]:
    """Members with commas between them, each before its comment."""
    all_members = list(members)
    for member in all_members[:-1]:
        text, mark, comment = member[-1].partition("\0")
        member[-1] = f"{text},{mark}{comment}"
    return [line.replace("\0", "") for member in all_members for line in member]


def _pruned(value: Any) -> Any:
    """Without what is empty: nobody said it and it does nothing."""
    if isinstance(value, list):
        return [_pruned(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    kept = {key: _pruned(inner) for key, inner in value.items()}
    return {key: inner for key, inner in kept.items() if inner not in (None, "", {}, [])}


def _json(value: Any) -> str:
    return _printable(json.dumps(value, ensure_ascii=False))


def _printable(text: str) -> str:
    """With escapes for what a terminal might obey or hide."""
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)
