"""What a project may say before anyone trusts it: choose among what the person has, and be stricter; the rest waits."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ostler.settings.located import Path
from ostler.settings.schema import Config

_RUNS_CODE = "it runs a program"
_SENDS_AWAY = "it says where your words and keys are sent"
_STORES = "it says where things are stored and for how long"
_WIDENS = "it would allow more than you do"
_OUTSIDE = "it leads out of this folder"
_NOT_YOURS = "it names no model of yours"
_MIGHT_LIFT = ""

_WAITS: Mapping[str, str] = {
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
_LADDERS: Mapping[str, tuple[str, ...]] = {
    "profile": ("god_mode", "balanced", "paranoid"),
    "sandbox": ("off", "prefer", "require"),
    "delete": ("allow", "ask", "deny"),
}
_AGENT_WORDS = frozenset({"mode", "description", "prompt", "temperature", "top_p", "hidden"})


class Part(NamedTuple):
    """A piece of project config that trust is about. Without `why` it is in force, as far as it narrows."""

    path: Path
    value: Any
    why: str


def narrow(value: Mapping[str, Any], user: Config) -> tuple[dict[str, Any], list[Part]]:
    """What of a project's layer takes effect untrusted, and the parts that trust is about."""
    sieve = _Sieve(user)
    sections: dict[str, Callable[[Any], Any]] = {
        "$schema": lambda said: said,
        "compaction": lambda said: said,
        "model": lambda said: sieve.model(("model",), said),
        "models": sieve.models,
        "permission": lambda said: sieve.permission(("permission",), said),
        "security": sieve.security,
        "agent": lambda said: _some({name: sieve.agent(name, agent) for name, agent in said.items()}),
        "mcp": lambda said: _some({name: sieve.mcp(name, server) for name, server in said.items()}),
        "instructions": lambda said: sieve.inside(("instructions",), said),
        "skills": lambda said: {"paths": sieve.inside(("skills", "paths"), said.get("paths", []))},
        "limits": sieve.limits,
        "ui": sieve.ui,
    }
    kept: dict[str, Any] = {}
    for key, said in value.items():
        if key not in sections:
            sieve.wait(key, said)
        elif (passed := sections[key](said)) is not None:
            kept[key] = passed
    return kept, sieve.parts


class _Sieve:
    """Each method gives what passes of a section and notes what does not. A null never passes: it takes back."""

    def __init__(self, user: Config) -> None:
        self.user = user
        self.parts: list[Part] = []
        self.choices = model_names(user)

    def hold(self, path: Path, value: Any, why: str) -> None:
        self.parts.append(Part(path, value, why))

    def wait(self, key: str, said: Any) -> None:
        why = _WAITS.get(key, _WIDENS)
        if isinstance(said, dict):
            for name, inner in said.items():
                self.hold((key, name), inner, why)
        else:
            self.hold((key,), said, why)

    def each(self, path: Path, said: Mapping[str, Any], passes: Callable[[str, Any], bool], why: str) -> dict[str, Any]:
        """The members that pass; the others wait."""
        kept = {key: value for key, value in said.items() if value is not None and passes(key, value)}
        for key in said:
            if key not in kept:
                self.hold((*path, key), said[key], why)
        return kept

    def model(self, path: Path, said: Any) -> Any:
        if said in self.choices:
            return said
        self.hold(path, said, _NOT_YOURS)
        return None

    def models(self, said: Mapping[str, Any]) -> dict[str, Any]:
        for number, profile in enumerate(said.get("profiles", ())):
            self.hold(("models", "profiles", number), profile, _SENDS_AWAY)
        active = said.get("active")
        if active in {profile.name for profile in self.user.models.profiles}:
            return {"active": active}
        if "active" in said:
            self.hold(("models", "active"), active, _NOT_YOURS)
        return {}

    def permission(self, path: Path, said: Any) -> Any:
        """The rules stay, as ones that narrow; trust is about them all once one of them is not a deny."""
        rules = list(_flat(path, said))
        if any(action != "deny" for _, action in rules):
            for place, action in rules:
                self.hold(place, action, _WIDENS if action == "allow" else _MIGHT_LIFT)
        return said

    def security(self, said: Mapping[str, Any]) -> dict[str, Any]:
        def passes(key: str, value: Any) -> bool:
            if key in _LADDERS:
                ladder = _LADDERS[key]
                floor = getattr(self.user.security, key) or ladder[-1]
                return ladder.index(value) >= ladder.index(floor)
            return key in ("blacklist_patterns", "danger_patterns") or (key == "allow_shell" and value is False)

        return self.each(("security",), said, passes, _WIDENS)

    def agent(self, name: str, said: Mapping[str, Any]) -> dict[str, Any]:
        path = ("agent", name)
        special = {key: said[key] for key in ("permission", "tools") if isinstance(said.get(key), dict | str)}
        mine = self.user.agent.get(name)
        steps = (mine and mine.max_steps) or self.user.limits.steps

        def passes(key: str, value: Any) -> bool:
            if key == "max_steps":
                return bool(value <= steps)
            if key == "model":
                return value in self.choices
            return key in _AGENT_WORDS or (key == "disable" and value is True)

        kept = self.each(path, {key: said[key] for key in said if key not in special}, passes, _WIDENS)
        if "permission" in special:
            kept["permission"] = self.permission((*path, "permission"), special["permission"])
        if "tools" in special:
            kept["tools"] = self.each((*path, "tools"), special["tools"], lambda _, on: on is False, _WIDENS)
        return kept

    def mcp(self, name: str, said: Mapping[str, Any]) -> dict[str, Any]:
        off = {"enabled": False} if said.get("enabled") is False else {}
        rest = {key: value for key, value in said.items() if key not in off}
        if rest:
            self.hold(("mcp", name), rest, _RUNS_CODE)
        return off

    def inside(self, path: Path, said: list[str]) -> list[str]:
        for number, name in enumerate(said):
            if not stays_inside(name):
                self.hold((*path, number), name, _OUTSIDE)
        return [name for name in said if stays_inside(name)]

    def limits(self, said: Mapping[str, Any]) -> dict[str, Any]:
        def passes(key: str, value: Any) -> bool:
            mine = getattr(self.user.limits, key)
            return mine is None or value <= mine

        return self.each(("limits",), said, passes, _WIDENS)

    def ui(self, said: Mapping[str, Any]) -> dict[str, Any]:
        # A key of its choice could be the one that allows.
        return self.each(("ui",), said, lambda key, _: key != "keys", "it changes what your keys do")


def model_names(user: Config) -> set[str]:
    """Every name by which a person's own models can be chosen."""
    names = {profile.name for profile in user.models.profiles} | set(user.provider.models) | {user.provider.model}
    names |= {f"{key}/{model}" for key, provider in user.providers.items() for model in provider.models}
    return names - {""}


def stays_inside(name: str) -> bool:
    """Whether a path from a project can only mean something in its own folder, as far as its letters tell."""
    steps = name.replace("\\", "/").split("/")
    return bool(name) and name[0] not in "/\\~$" and ".." not in steps and ":" not in steps[0] and "\0" not in name


def _some(kept: dict[str, Any]) -> dict[str, Any]:
    """Without the names of which nothing passed: an empty entry would be one of its own."""
    return {name: value for name, value in kept.items() if value}


def _flat(path: Path, said: Any) -> list[tuple[Path, str]]:
    if not isinstance(said, dict):
        return [(path, said)]
    return [leaf for key, inner in said.items() for leaf in _flat((*path, key), inner)]
