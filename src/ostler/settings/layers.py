"""One source of settings, and how several become one: later over earlier, objects deep, rules never."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from ostler.settings.jsonc import Document
from ostler.settings.located import Path
from ostler.settings.problems import Origin, Problem, dotted
from ostler.settings.validate import Checked, Flaw
from ostler.vocabulary.permission import Rule

LayerName = Literal["global", "project", "explicit", "environment", "flags"]

# Lists to which every layer adds: none may take away what another one refuses.
_GROWING = frozenset({("instructions",), ("security", "blacklist_patterns"), ("security", "danger_patterns")})


class Layer:
    """What one file, the environment or the flags say. `narrowing`: its rules may only make stricter."""

    __slots__ = ("checked", "document", "file", "name", "narrowing", "value")

    def __init__(
        self, name: LayerName, file: str, checked: Checked, document: Document | None = None, *, narrowing: bool = False
    ) -> None:
        self.name = name
        self.file = file
        self.checked = checked
        self.document = document
        self.narrowing = narrowing
        self.value = checked.value

    def __repr__(self) -> str:
        return f"Layer({self.name!r}, {self.file!r})"

    def narrowed(self, value: dict[str, Any]) -> "Layer":
        """The same layer with less in it."""
        layer = Layer(self.name, self.file, self.checked, self.document, narrowing=True)
        layer.value = value
        return layer

    def origin(self, path: Path) -> Origin:
        """Where this layer says something."""
        if self.document is None:
            return Origin(self.name, self.file)
        place = self.document.place(self.checked.written(path), of_key=True)
        return Origin(self.name, self.file, place.line)

    def problems(self, *, strict: bool = False) -> Iterator[Problem]:
        """What is wrong with it; unknown keys are only warned of unless `strict`."""
        for flaw in self.checked.flaws:
            yield self._problem(flaw, strict=strict)

    def _problem(self, flaw: Flaw, *, strict: bool) -> Problem:
        place = self.document.place(flaw.path, of_key=flaw.unknown_key) if self.document else (0, 0)
        severity: Literal["error", "warning"] = "warning" if flaw.unknown_key and not strict else "error"
        return Problem(self.file, *place, dotted(flaw.path), flaw.message, severity)

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


def merged(layers: Sequence[Layer]) -> dict[str, Any]:
    """All layers in one, without their rules."""
    total: dict[str, Any] = {}
    for layer in layers:
        total = over(total, _without_rules(layer.value))
    return total


def _without_rules(value: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: inner for key, inner in value.items() if key not in ("permission", "$schema")}
    if isinstance(kept.get("agent"), dict):
        kept["agent"] = {
            name: {key: inner for key, inner in agent.items() if key != "permission"}
            for name, agent in kept["agent"].items()
        }
    return kept


def over(old: Any, new: Any, path: Path = ()) -> Any:
    """One value with another over it."""
    if isinstance(old, dict) and isinstance(new, dict):
        return {**old, **{key: over(old[key], new[key], (*path, key)) if key in old else new[key] for key in new}}
    if isinstance(old, list) and isinstance(new, list):
        if path in _GROWING:
            return list(dict.fromkeys([*old, *new]))
        if path == ("models", "profiles"):
            return list({profile["name"]: profile for profile in [*old, *new]}.values())
    return new


def step_into(value: Any, path: Path) -> Path | None:
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
