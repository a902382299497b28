"""One layer of settings (file, environment or flags) and how layers are merged."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from ostler.core.permission import Rule
from ostler.settings.jsonc_parser import JsoncDocument, KeyPath
from ostler.settings.problems import Problem, SettingOrigin, format_path
from ostler.settings.validate import SchemaViolation, ValidatedConfig

LayerName = Literal["global", "project", "explicit", "environment"]

# Lists that are concatenated over all layers, so that no layer can remove what another one denies.
_APPENDED_LISTS = frozenset(
    {
        ("instructions",),
        *(("security", name) for name in ("blacklist_patterns", "danger_patterns")),
        *(("context", name) for name in ("redact_keys", "redact_patterns", "ignore_dirs")),
    }
)


class Layer:
    """The settings of a file, the environment or the flags. With `restrict_only` its rules can only restrict.

    `zero_notes` are about settings that only sessions with Agent Zero use.
    """

    __slots__ = ("document", "file", "name", "restrict_only", "validated", "value", "zero_notes")

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
        self.zero_notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Layer({self.name!r}, {self.file!r})"

    def restricted_to(self, value: dict[str, Any]) -> "Layer":
        """Return this layer with only the given values; its rules can then only restrict."""
        layer = self.with_value(value)
        layer.restrict_only = True
        return layer

    def with_value(self, value: dict[str, Any]) -> "Layer":
        """Return this layer with other values."""
        layer = Layer(self.name, self.file, self.validated, self.document, restrict_only=self.restrict_only)
        layer.value, layer.zero_notes = value, self.zero_notes
        return layer

    def origin(self, path: KeyPath) -> SettingOrigin:
        """Return where this layer sets a value."""
        if self.document is None:
            return SettingOrigin(self.name, self.file)
        position = self.document.position(self.validated.original_path(path), of_key=True)
        return SettingOrigin(self.name, self.file, position.line)

    def problems(self, *, strict: bool = False) -> Iterator[Problem]:
        """Yield the problems of this layer. Unknown keys are warnings unless `strict`."""
        for violation in self.validated.violations:
            yield self._problem(violation, strict=strict)

    def _problem(self, violation: SchemaViolation, *, strict: bool) -> Problem:
        position = self.document.position(violation.path, of_key=violation.unknown_key) if self.document else (0, 0)
        severity: Literal["error", "warning"] = "warning" if violation.unknown_key and not strict else "error"
        return Problem(self.file, *position, format_path(violation.path), violation.message, severity)

    def rules(self, agent: str = "") -> list[Rule]:
        """Return the general rules, or those of an agent, in the order of the file."""
        section = self.value.get("agent", {}).get(agent, {}) if agent else self.value
        rules = rule_items(section.get("permission"))
        return [Rule(key, pattern, action, self.file) for (key, pattern), action in rules]


def rule_items(permission: Any) -> Iterator[tuple[tuple[str, str], Any]]:
    """Yield the rules of a `permission` value as `((key, pattern), action)`."""
    if isinstance(permission, str):
        permission = {"*": permission}
    for key, value in (permission or {}).items():
        if isinstance(value, dict):
            yield from (((key, pattern), action) for pattern, action in value.items())
        else:
            yield (key, "*"), value


def merge_layers(layers: Sequence[Layer]) -> dict[str, Any]:
    """Merge the layers, without their rules; later layers win."""
    merged: dict[str, Any] = {}
    for layer in layers:
        merged = merge_values(merged, _without_rules(layer.value))
    return merged


def _without_rules(value: Mapping[str, Any]) -> dict[str, Any]:
    result = {key: inner for key, inner in value.items() if key not in ("permission", "$schema")}
    if isinstance(result.get("agent"), dict):
        result["agent"] = {
            name: {key: inner for key, inner in agent.items() if key != "permission"}
            for name, agent in result["agent"].items()
        }
    return result


def merge_values(old: Any, new: Any, path: KeyPath = ()) -> Any:
    """Merge two values: objects are merged deeply, some lists are combined, anything else is replaced by `new`."""
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
    """Return a path with names of list items replaced by indexes, or None if it does not exist in `value`."""
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
