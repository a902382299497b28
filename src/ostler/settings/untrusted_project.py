"""Filters the settings of an untrusted project: only choices among the user's own and stricter values take effect."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ostler.settings.jsonc_parser import KeyPath
from ostler.settings.schema import Config

_RUNS_CODE = "it runs a program"
_SENDS_AWAY = "it sets where your prompts and keys are sent"
_STORES = "it sets where data is stored and for how long"
_WIDENS = "it allows more than your own settings"
_OUTSIDE = "it points outside of this folder"
_UNKNOWN_MODEL = "it is not one of your models"
_MIGHT_LIFT = ""

_PENDING_SECTIONS: Mapping[str, str] = {
    "provider": _SENDS_AWAY,
    "providers": _SENDS_AWAY,
    "connection": _SENDS_AWAY,
    "server": _SENDS_AWAY,
    "hooks": _RUNS_CODE,
    "validation": _RUNS_CODE,
    "agent_servers": _RUNS_CODE,
    "mcp_servers": _RUNS_CODE,
    "session": _STORES,
    "logs": _STORES,
    "cache": _STORES,
}
# From least to most strict.
_STRICTNESS_ORDER: Mapping[str, tuple[str, ...]] = {
    "profile": ("god_mode", "balanced", "paranoid"),
    "sandbox": ("off", "prefer", "require"),
    "delete": ("allow", "ask", "deny"),
}
_SAFE_AGENT_KEYS = frozenset({"mode", "description", "prompt", "temperature", "top_p", "hidden"})


class ProjectSetting(NamedTuple):
    """A project setting that trust covers. With an empty `reason` it is already in effect where it restricts."""

    path: KeyPath
    value: Any
    reason: str


def restrict_untrusted(value: Mapping[str, Any], user_config: Config) -> tuple[dict[str, Any], list[ProjectSetting]]:
    """Return what takes effect without trust, and the settings that trust covers."""
    untrusted = _UntrustedFilter(user_config)
    sections: dict[str, Callable[[Any], Any]] = {
        "$schema": lambda value: value,
        "compaction": lambda value: value,
        "model": lambda value: untrusted.model(("model",), value),
        "models": untrusted.models,
        "permission": lambda value: untrusted.permission(("permission",), value),
        "security": untrusted.security,
        "agent": lambda value: _non_empty({name: untrusted.agent(name, agent) for name, agent in value.items()}),
        "mcp": lambda value: _non_empty({name: untrusted.mcp(name, server) for name, server in value.items()}),
        "instructions": lambda value: untrusted.filter_paths(("instructions",), value),
        "skills": lambda value: {"paths": untrusted.filter_paths(("skills", "paths"), value.get("paths", []))},
        "limits": untrusted.limits,
        "context": untrusted.context,
        "ui": untrusted.ui,
    }
    effective: dict[str, Any] = {}
    for key, section in value.items():
        if key not in sections:
            untrusted.add_section(key, section)
        elif (passed := sections[key](section)) is not None:
            effective[key] = passed
    return effective, untrusted.settings


class _UntrustedFilter:
    """Filters one section per method: returns what takes effect and adds the rest to `settings`.

    A null never takes effect, because it would unset a value of the user.
    """

    def __init__(self, user_config: Config) -> None:
        self.user_config = user_config
        self.settings: list[ProjectSetting] = []
        self.choices = model_names(user_config)

    def add_setting(self, path: KeyPath, value: Any, reason: str) -> None:
        self.settings.append(ProjectSetting(path, value, reason))

    def add_section(self, key: str, value: Any) -> None:
        reason = _PENDING_SECTIONS.get(key, _WIDENS)
        if isinstance(value, dict):
            for name, inner in value.items():
                self.add_setting((key, name), inner, reason)
        else:
            self.add_setting((key,), value, reason)

    def filter_members(
        self, path: KeyPath, members: Mapping[str, Any], passes: Callable[[str, Any], bool], reason: str
    ) -> dict[str, Any]:
        """Return the members that pass; the others wait for trust."""
        passed = {key: value for key, value in members.items() if value is not None and passes(key, value)}
        for key in members:
            if key not in passed:
                self.add_setting((*path, key), members[key], reason)
        return passed

    def model(self, path: KeyPath, value: Any) -> Any:
        if value in self.choices:
            return value
        self.add_setting(path, value, _UNKNOWN_MODEL)
        return None

    def models(self, section: Mapping[str, Any]) -> dict[str, Any]:
        for number, profile in enumerate(section.get("profiles", ())):
            self.add_setting(("models", "profiles", number), profile, _SENDS_AWAY)
        active = section.get("active")
        if active in {profile.name for profile in self.user_config.models.profiles}:
            return {"active": active}
        if "active" in section:
            self.add_setting(("models", "active"), active, _UNKNOWN_MODEL)
        return {}

    def permission(self, path: KeyPath, value: Any) -> Any:
        """Keep all rules, which then can only restrict. If one of them is not a deny, trust covers all of them."""
        rules = list(_flatten(path, value))
        if any(action != "deny" for _, action in rules):
            for rule_path, action in rules:
                self.add_setting(rule_path, action, _WIDENS if action == "allow" else _MIGHT_LIFT)
        return value

    def security(self, section: Mapping[str, Any]) -> dict[str, Any]:
        def passes(key: str, value: Any) -> bool:
            if key in _STRICTNESS_ORDER:
                order = _STRICTNESS_ORDER[key]
                minimum = getattr(self.user_config.security, key) or order[-1]
                return order.index(value) >= order.index(minimum)
            return key in ("blacklist_patterns", "danger_patterns") or (key == "allow_shell" and value is False)

        return self.filter_members(("security",), section, passes, _WIDENS)

    def agent(self, name: str, section: Mapping[str, Any]) -> dict[str, Any]:
        path = ("agent", name)
        special = {key: section[key] for key in ("permission", "tools") if isinstance(section.get(key), dict | str)}
        own = self.user_config.agent.get(name)
        steps = (own and own.max_steps) or self.user_config.limits.steps

        def passes(key: str, value: Any) -> bool:
            if key == "max_steps":
                return bool(value <= steps)
            if key == "model":
                return value in self.choices
            return key in _SAFE_AGENT_KEYS or (key == "disable" and value is True)

        plain = {key: section[key] for key in section if key not in special}
        result = self.filter_members(path, plain, passes, _WIDENS)
        if "permission" in special:
            result["permission"] = self.permission((*path, "permission"), special["permission"])
        if "tools" in special:
            result["tools"] = self.filter_members(
                (*path, "tools"), special["tools"], lambda _, enabled: enabled is False, _WIDENS
            )
        return result

    def mcp(self, name: str, section: Mapping[str, Any]) -> dict[str, Any]:
        off = {"enabled": False} if section.get("enabled") is False else {}
        rest = {key: value for key, value in section.items() if key not in off}
        if rest:
            self.add_setting(("mcp", name), rest, _RUNS_CODE)
        return off

    def filter_paths(self, path: KeyPath, names: list[str]) -> list[str]:
        for number, name in enumerate(names):
            if not is_inside_project(name):
                self.add_setting((*path, number), name, _OUTSIDE)
        return [name for name in names if is_inside_project(name)]

    def limits(self, section: Mapping[str, Any]) -> dict[str, Any]:
        def passes(key: str, value: Any) -> bool:
            own = getattr(self.user_config.limits, key)
            return own is None or value <= own

        return self.filter_members(("limits",), section, passes, _WIDENS)

    def context(self, section: Mapping[str, Any]) -> dict[str, Any]:
        def passes(key: str, value: Any) -> bool:
            if key.startswith("max_"):
                return bool(value <= getattr(self.user_config.context, key))
            return value is False or (key in ("redact_keys", "redact_patterns", "ignore_dirs") and bool(value))

        return self.filter_members(("context",), section, passes, _WIDENS)

    def ui(self, section: Mapping[str, Any]) -> dict[str, Any]:
        # A project could otherwise choose the key that approves a request.
        return self.filter_members(("ui",), section, lambda key, _: key != "keys", "it changes your key bindings")


def model_names(config: Config) -> set[str]:
    """Return every name by which the user's own models can be chosen."""
    names = {profile.name for profile in config.models.profiles} | set(config.provider.models) | {config.provider.model}
    names |= {f"{key}/{model}" for key, provider in config.providers.items() for model in provider.models}
    return names - {""}


def is_inside_project(name: str) -> bool:
    """Return whether a path is relative and has no `..`; symlinks are not resolved."""
    steps = name.replace("\\", "/").split("/")
    return bool(name) and name[0] not in "/\\~$" and ".." not in steps and ":" not in steps[0] and "\0" not in name


def _non_empty(entries: dict[str, Any]) -> dict[str, Any]:
    """Remove empty entries, because an empty entry would define an agent or a server."""
    return {name: value for name, value in entries.items() if value}


def _flatten(path: KeyPath, value: Any) -> list[tuple[KeyPath, str]]:
    if not isinstance(value, dict):
        return [(path, value)]
    return [leaf for key, inner in value.items() for leaf in _flatten((*path, key), inner)]
