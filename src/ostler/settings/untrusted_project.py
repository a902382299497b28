"""What a project may say before anyone trusts it: choose among what the person has, and be stricter; the rest waits."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ostler.settings.jsonc_parser import KeyPath
from ostler.settings.schema import Config

_RUNS_CODE = "it runs a program"
_SENDS_AWAY = "it says where your words and keys are sent"
_STORES = "it says where things are stored and for how long"
_WIDENS = "it would allow more than you do"
_OUTSIDE = "it leads out of this folder"
_UNKNOWN_MODEL = "it names no model of yours"
_MIGHT_LIFT = ""

_PENDING_SECTIONS: Mapping[str, str] = {
    "provider": _SENDS_AWAY,
    "providers": _SENDS_AWAY,
    "connection": _SENDS_AWAY,
    "context": _SENDS_AWAY,
    "server": _SENDS_AWAY,
    "hooks": _RUNS_CODE,
    "validation": _RUNS_CODE,
    "agent_servers": _RUNS_CODE,
    "mcp_servers": _RUNS_CODE,
    "session": _STORES,
    "logs": _STORES,
    "cache": _STORES,
}
# From wide to narrow.
_STRICTNESS_ORDER: Mapping[str, tuple[str, ...]] = {
    "profile": ("god_mode", "balanced", "paranoid"),
    "sandbox": ("off", "prefer", "require"),
    "delete": ("allow", "ask", "deny"),
}
_SAFE_AGENT_KEYS = frozenset({"mode", "description", "prompt", "temperature", "top_p", "hidden"})


class ProjectSetting(NamedTuple):
    """A piece of project config that trust is about. Without `why` it is in force, as far as it narrows."""

    path: KeyPath
    value: Any
    reason: str


def restrict_untrusted(value: Mapping[str, Any], user_config: Config) -> tuple[dict[str, Any], list[ProjectSetting]]:
    """What of a project's layer takes effect untrusted, and the parts that trust is about."""
    sieve = _UntrustedFilter(user_config)
    sections: dict[str, Callable[[Any], Any]] = {
        "$schema": lambda said: said,
        "compaction": lambda said: said,
        "model": lambda said: sieve.model(("model",), said),
        "models": sieve.models,
        "permission": lambda said: sieve.permission(("permission",), said),
        "security": sieve.security,
        "agent": lambda said: _non_empty({name: sieve.agent(name, agent) for name, agent in said.items()}),
        "mcp": lambda said: _non_empty({name: sieve.mcp(name, server) for name, server in said.items()}),
        "instructions": lambda said: sieve.filter_paths(("instructions",), said),
        "skills": lambda said: {"paths": sieve.filter_paths(("skills", "paths"), said.get("paths", []))},
        "limits": sieve.limits,
        "ui": sieve.ui,
    }
    kept: dict[str, Any] = {}
    for key, said in value.items():
        if key not in sections:
            sieve.add_section(key, said)
        elif (passed := sections[key](said)) is not None:
            kept[key] = passed
    return kept, sieve.settings


class _UntrustedFilter:
    """Each method gives what passes of a section and notes what does not. A null never passes: it takes back."""

    def __init__(self, user_config: Config) -> None:
        self.user_config = user_config
        self.settings: list[ProjectSetting] = []
        self.choices = model_names(user_config)

    def add_setting(self, path: KeyPath, value: Any, reason: str) -> None:
        self.settings.append(ProjectSetting(path, value, reason))

    def add_section(self, key: str, value: Any) -> None:
        why = _PENDING_SECTIONS.get(key, _WIDENS)
        if isinstance(value, dict):
            for name, inner in value.items():
                self.add_setting((key, name), inner, why)
        else:
            self.add_setting((key,), value, why)

    def filter_members(
        self, path: KeyPath, members: Mapping[str, Any], passes: Callable[[str, Any], bool], reason: str
    ) -> dict[str, Any]:
        """The members that pass; the others wait."""
        kept = {key: value for key, value in members.items() if value is not None and passes(key, value)}
        for key in members:
            if key not in kept:
                self.add_setting((*path, key), members[key], reason)
        return kept

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
        """The rules stay, as ones that narrow; trust is about them all once one of them is not a deny."""
        rules = list(_flatten(path, value))
        if any(action != "deny" for _, action in rules):
            for place, action in rules:
                self.add_setting(place, action, _WIDENS if action == "allow" else _MIGHT_LIFT)
        return value

    def security(self, section: Mapping[str, Any]) -> dict[str, Any]:
        def passes(key: str, value: Any) -> bool:
            if key in _STRICTNESS_ORDER:
                ladder = _STRICTNESS_ORDER[key]
                floor = getattr(self.user_config.security, key) or ladder[-1]
                return ladder.index(value) >= ladder.index(floor)
            return key in ("blacklist_patterns", "danger_patterns") or (key == "allow_shell" and value is False)

        return self.filter_members(("security",), section, passes, _WIDENS)

    def agent(self, name: str, section: Mapping[str, Any]) -> dict[str, Any]:
        path = ("agent", name)
        special = {key: section[key] for key in ("permission", "tools") if isinstance(section.get(key), dict | str)}
        mine = self.user_config.agent.get(name)
        steps = (mine and mine.max_steps) or self.user_config.limits.steps

        def passes(key: str, value: Any) -> bool:
            if key == "max_steps":
                return bool(value <= steps)
            if key == "model":
                return value in self.choices
            return key in _SAFE_AGENT_KEYS or (key == "disable" and value is True)

        kept = self.filter_members(path, {key: section[key] for key in section if key not in special}, passes, _WIDENS)
        if "permission" in special:
            kept["permission"] = self.permission((*path, "permission"), special["permission"])
        if "tools" in special:
            kept["tools"] = self.filter_members((*path, "tools"), special["tools"], lambda _, on: on is False, _WIDENS)
        return kept

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
            mine = getattr(self.user_config.limits, key)
            return mine is None or value <= mine

        return self.filter_members(("limits",), section, passes, _WIDENS)

    def ui(self, section: Mapping[str, Any]) -> dict[str, Any]:
        # A key of its choice could be the one that allows.
        return self.filter_members(("ui",), section, lambda key, _: key != "keys", "it changes what your keys do")


def model_names(config: Config) -> set[str]:
    """Every name by which a person's own models can be chosen."""
    names = {profile.name for profile in config.models.profiles} | set(config.provider.models) | {config.provider.model}
    names |= {f"{key}/{model}" for key, provider in config.providers.items() for model in provider.models}
    return names - {""}


def is_inside_project(name: str) -> bool:
    """Whether a path from a project can only mean something in its own folder, as far as its letters tell."""
    steps = name.replace("\\", "/").split("/")
    return bool(name) and name[0] not in "/\\~$" and ".." not in steps and ":" not in steps[0] and "\0" not in name


def _non_empty(entries: dict[str, Any]) -> dict[str, Any]:
    """Without the names of which nothing passed: an empty entry would be one of its own."""
    return {name: value for name, value in entries.items() if value}


def _flatten(path: KeyPath, value: Any) -> list[tuple[KeyPath, str]]:
    if not isinstance(value, dict):
        return [(path, value)]
    return [leaf for key, inner in value.items() for leaf in _flatten((*path, key), inner)]
