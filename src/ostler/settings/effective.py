"""The settings in force, and where each of them comes from."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from ostler.core.errors import UsageError
from ostler.core.permission import Rule
from ostler.settings.jsonc_parser import KeyPath
from ostler.settings.layers import Layer, merge_layers, resolve_path
from ostler.settings.masking import mask_secrets
from ostler.settings.problems import PendingSetting, Problem, SettingOrigin, format_path
from ostler.settings.schema import Config
from ostler.settings.secret import decode_secret
from ostler.settings.untrusted_project import ProjectSetting, restrict_untrusted

DEFAULT_ORIGIN = SettingOrigin("default")


class Settings:
    """One config made of layers. `held` is what of the project's config waits for trust."""

    __slots__ = ("_all_layers", "_project_settings", "config", "layers", "notes", "problems", "trusted")

    def __init__(
        self,
        config: Config,
        all_layers: Sequence[Layer],
        layers: Sequence[Layer],
        project_settings: Sequence[tuple[Layer, ProjectSetting]],
    ) -> None:
        self.config = config
        self.layers = tuple(layers)
        self.notes: tuple[str, ...] = ()
        self.problems: tuple[Problem, ...] = tuple(problem for layer in all_layers for problem in layer.problems())
        self.trusted = False
        self._all_layers = tuple(all_layers)
        self._project_settings = tuple(project_settings)

    @classmethod
    def from_layers(
        cls, layers: tuple[Layer, ...], notes: tuple[str, ...] = (), *, trusted: bool = False
    ) -> "Settings":
        """Merge layers; those of an untrusted project only as far as they narrow."""
        user = _convert([layer for layer in layers if layer.name != "project"])
        effective: list[Layer] = []
        parts: list[tuple[Layer, ProjectSetting]] = []
        for layer in layers:
            kept, found = restrict_untrusted(layer.value, user) if layer.name == "project" else (layer.value, [])
            parts.extend((layer, part) for part in found)
            effective.append(layer.restricted_to(kept) if layer.name == "project" and not trusted else layer)
        settings = cls(_convert(effective), layers, effective, parts)
        settings.notes = notes
        settings.trusted = trusted
        return settings

    def with_trust(self) -> "Settings":
        """The same settings with the project trusted, from what was already read: nothing can change in between."""
        return Settings.from_layers(self._all_layers, self.notes, trusted=True)

    def origin(self, key: str | KeyPath) -> SettingOrigin:
        """Where a setting comes from. A profile is reached by its name or number, a name with dots by a path."""
        path = parse_key(key) if isinstance(key, str) else key
        for layer in reversed(self.layers):
            found = resolve_path(layer.value, path)
            if found is not None:
                return layer.origin(found)
        return DEFAULT_ORIGIN

    def last_layer_index(self, path: KeyPath) -> int:
        """The number of the last layer that says something, or -1."""
        return max(
            (n for n, layer in enumerate(self.layers) if resolve_path(layer.value, path) is not None), default=-1
        )

    def rules(self, agent: str = "") -> list[Rule]:
        """The rules of all layers in order (the last match wins), for all calls or for one agent's."""
        return [rule for layer in self.layers if not layer.restrict_only for rule in layer.rules(agent)]

    def restricting_rules(self, agent: str = "") -> list[Rule]:
        """The rules of an untrusted project. They may make a verdict stricter and never wider: its `allow` lifts
        nothing but what the same project asks or denies further up."""
        return [rule for layer in self.layers if layer.restrict_only for rule in layer.rules(agent)]

    @property
    def pending_trust(self) -> tuple[PendingSetting, ...]:
        """What of the project's config waits for trust: nothing once it is trusted."""
        if self.trusted:
            return ()
        return tuple(self._pending_setting(layer, part) for layer, part in self._project_settings if part.reason)

    def trust_items(self) -> list[tuple[KeyPath, Any, PendingSetting]]:
        """All that trust in this project is about, whether it is given or not: path, value, and how to show it."""
        return [(part.path, part.value, self._pending_setting(layer, part)) for layer, part in self._project_settings]

    def _pending_setting(self, layer: Layer, setting: ProjectSetting) -> PendingSetting:
        import json

        name = next((step for step in reversed(setting.path) if isinstance(step, str)), "")
        line = layer.origin(setting.path).line
        return PendingSetting(
            format_path(setting.path), layer.file, line, setting.reason, json.dumps(mask_secrets(setting.value, name))
        )

    def __repr__(self) -> str:
        return f"Settings({', '.join(layer.file for layer in self.layers)})"


def parse_key(key: str) -> KeyPath:
    """`models.profiles[0].name` as a path."""
    steps = re.findall(r"\[(\d{1,6})\]|([^.\[\]]+)", key)
    return tuple(int(number) if number else name for number, name in steps)


def _convert(layers: Sequence[Layer]) -> Config:
    try:
        return msgspec.convert(merge_layers(layers), Config, dec_hook=decode_secret)
    except msgspec.ValidationError as error:
        raise UsageError(f"the config files contradict each other: {error}") from None
