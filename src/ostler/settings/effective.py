"""The settings in force, and where each of them comes from."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from ostler.settings.layers import Layer, merged, step_into
from ostler.settings.located import Path
from ostler.settings.masking import masked
from ostler.settings.narrow import Part, narrow
from ostler.settings.problems import Held, Origin, Problem, dotted
from ostler.settings.schema import Config
from ostler.settings.secret import from_plain
from ostler.vocabulary.errors import UsageError
from ostler.vocabulary.permission import Rule

DEFAULT = Origin("default")


class Settings:
    """One config made of layers. `held` is what of the project's config waits for trust."""

    __slots__ = ("_parts", "_read", "config", "layers", "notes", "problems", "trusted")

    def __init__(
        self, config: Config, read: Sequence[Layer], layers: Sequence[Layer], parts: Sequence[tuple[Layer, Part]]
    ) -> None:
        self.config = config
        self.layers = tuple(layers)
        self.notes: tuple[str, ...] = ()
        self.problems: tuple[Problem, ...] = tuple(problem for layer in read for problem in layer.problems())
        self.trusted = False
        self._read = tuple(read)
        self._parts = tuple(parts)

    @classmethod
    def of(cls, layers: tuple[Layer, ...], notes: tuple[str, ...] = (), *, trusted: bool = False) -> "Settings":
        """Merge layers; those of an untrusted project only as far as they narrow."""
        user = _convert([layer for layer in layers if layer.name != "project"])
        effective: list[Layer] = []
        parts: list[tuple[Layer, Part]] = []
        for layer in layers:
            kept, found = narrow(layer.value, user) if layer.name == "project" else (layer.value, [])
            parts.extend((layer, part) for part in found)
            effective.append(layer.narrowed(kept) if layer.name == "project" and not trusted else layer)
        settings = cls(_convert(effective), layers, effective, parts)
        settings.notes = notes
        settings.trusted = trusted
        return settings

    def trusting(self) -> "Settings":
        """The same settings with the project trusted, from what was already read: nothing can change in between."""
        return Settings.of(self._read, self.notes, trusted=True)

    def origin(self, key: str | Path) -> Origin:
        """Where a setting comes from. A profile is reached by its name or number, a name with dots by a path."""
        path = parse_key(key) if isinstance(key, str) else key
        for layer in reversed(self.layers):
            found = step_into(layer.value, path)
            if found is not None:
                return layer.origin(found)
        return DEFAULT

    def layer_of(self, path: Path) -> int:
        """The number of the last layer that says something, or -1."""
        return max((n for n, layer in enumerate(self.layers) if step_into(layer.value, path) is not None), default=-1)

    def rules(self, agent: str = "") -> list[Rule]:
        """The rules of all layers in order (the last match wins), for all calls or for one agent's."""
        return [rule for layer in self.layers if not layer.narrowing for rule in layer.rules(agent)]

    def narrow_rules(self, agent: str = "") -> list[Rule]:
        """The rules of an untrusted project. They may make a verdict stricter and never wider: its `allow` lifts
        nothing but what the same project asks or denies further up."""
        return [rule for layer in self.layers if layer.narrowing for rule in layer.rules(agent)]

    @property
    def held(self) -> tuple[Held, ...]:
        """What of the project's config waits for trust: nothing once it is trusted."""
        if self.trusted:
            return ()
        return tuple(self._held(layer, part) for layer, part in self._parts if part.why)

    def parts(self) -> list[tuple[Path, Any, Held]]:
        """All that trust in this project is about, whether it is given or not: path, value, and how to show it."""
        return [(part.path, part.value, self._held(layer, part)) for layer, part in self._parts]

    def _held(self, layer: Layer, part: Part) -> Held:
        import json

        name = next((step for step in reversed(part.path) if isinstance(step, str)), "")
        line = layer.origin(part.path).line
        return Held(dotted(part.path), layer.file, line, part.why, json.dumps(masked(part.value, name)))

    def __repr__(self) -> str:
        return f"Settings({', '.join(layer.file for layer in self.layers)})"


def parse_key(key: str) -> Path:
    """`models.profiles[0].name` as a path."""
    steps = re.findall(r"\[(\d{1,6})\]|([^.\[\]]+)", key)
    return tuple(int(number) if number else name for number, name in steps)


def _convert(layers: Sequence[Layer]) -> Config:
    try:
        return msgspec.convert(merged(layers), Config, dec_hook=from_plain)
    except msgspec.ValidationError as error:
        raise UsageError(f"the config files contradict each other: {error}") from None
