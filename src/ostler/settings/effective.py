"""The effective settings and the origin of each value."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from ostler.core.errors import UsageError
from ostler.core.permission import Rule
from ostler.settings.jsonc_parser import KeyPath
from ostler.settings.layers import Layer, merge_layers, merge_values, resolve_path
from ostler.settings.masking import mask_secrets
from ostler.settings.problems import PendingSetting, Problem, SettingOrigin, format_path
from ostler.settings.schema import AgentConfig, Config
from ostler.settings.secret import decode_secret
from ostler.settings.untrusted_project import ProjectSetting, restrict_untrusted

DEFAULT_ORIGIN = SettingOrigin("default")


class Settings:
    """A config merged from layers. `pending_trust` lists the project settings that wait for trust."""

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
        """Merge layers. Settings of an untrusted project only take effect where they restrict."""
        user = _convert([layer for layer in layers if layer.name != "project"])
        effective: list[Layer] = []
        project_settings: list[tuple[Layer, ProjectSetting]] = []
        for layer in layers:
            value, found = restrict_untrusted(layer.value, user) if layer.name == "project" else (layer.value, [])
            project_settings.extend((layer, setting) for setting in found)
            effective.append(layer.restricted_to(value) if layer.name == "project" and not trusted else layer)
        settings = cls(_convert(effective), layers, effective, project_settings)
        settings.notes = notes
        settings.trusted = trusted
        return settings

    def with_trust(self) -> "Settings":
        """Return the same settings with the project trusted, without reading the files again."""
        return Settings.from_layers(self._all_layers, self.notes, trusted=True)

    def for_agent_zero(self) -> "Settings":
        """Return the settings of sessions with Agent Zero, where `connection.security` replaces `security`."""
        layers = tuple(layer.with_value(_with_zero_security(layer.value)) for layer in self._all_layers)
        return Settings.from_layers(layers, self.notes, trusted=self.trusted)

    @property
    def zero_notes(self) -> tuple[str, ...]:
        """What the user should know about settings that only sessions with Agent Zero use."""
        return tuple(note for layer in self._all_layers for note in layer.zero_notes)

    def origin(self, key: str | KeyPath) -> SettingOrigin:
        """Return where a setting comes from. Address profiles by name or index; use a path for names with dots."""
        path = parse_key(key) if isinstance(key, str) else key
        for layer in reversed(self.layers):
            found = resolve_path(layer.value, path)
            if found is not None:
                return layer.origin(found)
        return DEFAULT_ORIGIN

    def last_layer_index(self, path: KeyPath) -> int:
        """Return the index of the last layer that sets a value, or -1."""
        return max(
            (n for n, layer in enumerate(self.layers) if resolve_path(layer.value, path) is not None), default=-1
        )

    def rules(self, agent: str = "") -> list[Rule]:
        """Return the rules of all layers in order (the last match wins), general ones or those of an agent."""
        return [rule for layer in self.layers if not layer.restrict_only for rule in layer.rules(agent)]

    def restricting_rules(self, agent: str = "") -> list[Rule]:
        """Return the rules of an untrusted project, which can only make a verdict stricter.

        Its `allow` only overrides an earlier `ask` or `deny` of the same project.
        """
        return [rule for layer in self.layers if layer.restrict_only for rule in layer.rules(agent)]

    def agent_entry(self, agent: str, *, project: bool) -> AgentConfig:
        """Return what the project's layers, or all others, say about an agent."""
        entry: dict[str, Any] = {}
        for layer in self._agent_layers(project=project):
            entry = merge_values(entry, layer.value.get("agent", {}).get(agent, {}))
        return msgspec.convert({key: value for key, value in entry.items() if key != "permission"}, AgentConfig)

    def agent_rules(self, agent: str, *, project: bool) -> list[Rule]:
        """Return the rules of an agent in the project's layers, or in all others."""
        return [rule for layer in self._agent_layers(project=project) for rule in layer.rules(agent)]

    def user_agents(self) -> set[str]:
        """Return the agents that the user's own settings name."""
        return {name for layer in self._agent_layers(project=False) for name in layer.value.get("agent", {})}

    def _agent_layers(self, *, project: bool) -> list[Layer]:
        return [layer for layer in self.layers if (layer.name == "project") is project]

    @property
    def pending_trust(self) -> tuple[PendingSetting, ...]:
        """The project settings that wait for trust; empty if the project is trusted."""
        if self.trusted:
            return ()
        return tuple(
            self._pending_setting(layer, setting) for layer, setting in self._project_settings if setting.reason
        )

    def trust_items(self) -> list[tuple[KeyPath, Any, PendingSetting]]:
        """Return everything that trusting the project covers, as path, value and how to show it."""
        return [
            (setting.path, setting.value, self._pending_setting(layer, setting))
            for layer, setting in self._project_settings
        ]

    def _pending_setting(self, layer: Layer, setting: ProjectSetting) -> PendingSetting:
        import json

        name = next((step for step in reversed(setting.path) if isinstance(step, str)), "")
        line = layer.origin(setting.path).line
        return PendingSetting(
            format_path(setting.path), layer.file, line, setting.reason, json.dumps(mask_secrets(setting.value, name))
        )

    def __repr__(self) -> str:
        return f"Settings({', '.join(layer.file for layer in self.layers)})"


def _with_zero_security(value: dict[str, Any]) -> dict[str, Any]:
    own = value.get("connection", {}).get("security")
    return {**value, "security": merge_values(value.get("security", {}), own, ("security",))} if own else value


def parse_key(key: str) -> KeyPath:
    """Parse a key such as `models.profiles[0].name` into a path."""
    steps = re.findall(r"\[(\d{1,6})\]|([^.\[\]]+)", key)
    return tuple(int(number) if number else name for number, name in steps)


def _convert(layers: Sequence[Layer]) -> Config:
    try:
        return msgspec.convert(merge_layers(layers), Config, dec_hook=decode_secret)
    except msgspec.ValidationError as error:
        raise UsageError(f"the config files contradict each other: {error}") from None
