"""One source of settings, and how several become one: later over earlier, objects deep, rules never."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from ostler.core.permission import Rule
from ostler.settings.jsonc_document import JsoncDocument
from ostler.settings.jsonc_parser import KeyPath
from ostler.settings.problems import Problem, SettingOrigin, format_path
from ostler.settings.validate import SchemaViolation, ValidatedConfig

LayerName = Literal["global", "project", "explicit", "environment", "flags"]

# Lists to which every layer adds: none may take away what another one refuses.
_APPENDED_LISTS = frozenset({("instructions",), ("security", "blacklist_patterns"), ("security", "danger_patterns")})


class Layer:
    """What one file, the environment or the flags say. `narrowing`: its rules may only make stricter."""

    __slots__ = ("document", "file", "name", "restrict_only", "validated", "value")

    def __init__(
        self,
        name: LayerName,
        file: str,
        validated: ValidatedConfig,
        document: JsoncDocument | None = None,
        *,
        restrict_only: bool = False,
    ) -> None:
        self.name = name
        self.file = file
        self.validated = validated
        self.document = document
        self.restrict_only = restrict_only
        self.value = validated.value

    def __repr__(self) -> str:
        return f"Layer({self.name!r}, {self.file!r})"

    def restricted_to(self, value: dict[str, Any]) -> "Layer":
        """The same layer with less in it."""
        layer = Layer(self.name, self.file, self.validated, self.document, restrict_only=True)
        layer.value = value
        return layer

    def origin(self, path: KeyPath) -> SettingOrigin:
        """Where this layer says something."""
        if self.document is None:
            return SettingOrigin(self.name, self.file)
        place = self.document.position(self.validated.original_path(path), of_key=True)
        return SettingOrigin(self.name, self.file, place.line)

    def problems(self, *, strict: bool = False) -> Iterator[Problem]:
        """What is wrong with it; unknown keys are only warned of unless `strict`."""
        for flaw in self.validated.violations:
            yield self._problem(flaw, strict=strict)

    def _problem(self, violation: SchemaViolation, *, strict: bool) -> Problem:
        place = self.document.position(violation.path, of_key=violation.unknown_key) if self.document else (0, 0)
        severity: Literal["error", "warning"] = "warning" if violation.unknown_key and not strict else "error"
        return Problem(self.file, *place, format_path(violation.path), violation.message, severity)

    def rules(self, agent: str = "") -> list[Rule]:
        """The rules for all calls, or those for one agent's, in the order of the file."""
        said = self.value.get("agent", {}).get(agent, {}) if agent else self.value
        return [Rule(key, pattern, action, self.file) for (key, pattern), action in rule_items(said.get("permission"))]


def rule_items(permission: Any) -> Iterator[tuple[tuple[str, str], Any]]:
    """Each rule of a `permission` value: its key, its pattern and its action."""
    if isinstance(permission, str):
        permission = {"*": permission}
    for key, said in (permission or {}).items():
        if isinstance(said, dict):
            yield from (((key, pattern), action) for pattern, action in said.items())
        else:
            yield (key, "*"), said


def merge_layers(layers: Sequence[Layer]) -> dict[str, Any]:
    """All layers in one, without their rules."""
    total: dict[str, Any] = {}
    for layer in layers:
        total = merge_values(total, _without_rules(layer.value))
    return total


def _without_rules(value: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: inner for key, inner in value.items() if key not in ("permission", "$schema")}
    if isinstance(kept.get("agent"), dict):
        kept["agent"] = {
            name: {key: inner for key, inner in agent.items() if key != "permission"}
            for name, agent in kept["agent"].items()
        }
    return kept


def merge_values(old: Any, new: Any, path: KeyPath = ()) -> Any:
    """One value with another over it."""
    if isinstance(old, dict) and isinstance(new, dict):
        return {
            **old,
            **{key: merge_values(old[key], new[key], (*path, key)) if key in old else new[key] for key in new},
        }
    if isinstance(old, list) and isinstance(new, list):
        if path in _APPENDED_LISTS:
            return list(dict.fromkeys([*old, *new]))
        if path == ("models", "profiles"):
            return list({profile["name"]: profile for profile in [*old, *new]}.values())
    return new


def resolve_path(value: Any, path: KeyPath) -> KeyPath | None:
    """The path to something in a layer, with a profile's name turned into its number; nothing if it is not there."""
    found: list[str | int] = []
    for step in path:
        if isinstance(value, list):
            index = _index(value, step)
            if index is None:
                return None
            found.append(index)
            value = value[index]
        elif isinstance(value, dict) and step in value:
            found.append(step)
            value = value[step]
        else:
            return None
    return tuple(found)


def _index(items: Sequence[Any], step: str | int) -> int | None:
    if isinstance(step, int):
        return step if step < len(items) else None
    return next((n for n, item in enumerate(items) if isinstance(item, dict) and item.get("name") == step), None)
