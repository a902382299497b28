"""Rules as data: reading them from settings, and which one decides. The last that matches wins; silence means ask."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

from ostler.policy.wildcard import matches
from ostler.text.names import nearest
from ostler.vocabulary.errors import UsageError
from ostler.vocabulary.permission import Action, Need, Rule
from ostler.vocabulary.tool_names import NAMES, find_name

KEYS = (*NAMES, "delete", "external_directory", "network", "agent")
EDITS = frozenset({"write", "edit", "patch"})
STRICTNESS: Mapping[Action, int] = {"allow": 0, "ask": 1, "deny": 2}


def parse(permission: Mapping[str, Any] | str, origin: str) -> list[Rule]:
    """The rules of one `permission` setting, in the order they were written."""
    if isinstance(permission, str):
        permission = {"*": permission}
    return [
        Rule(key, pattern, _action(action, f"permission.{key}", origin), origin)
        for key, value in permission.items()
        for pattern, action in (value.items() if isinstance(value, Mapping) else [("*", value)])
    ]


def parse_flag(text: str, action: Action = "allow") -> Rule:
    """`KEY` or `KEY:PATTERN`, as `--allow` takes it."""
    key, _, pattern = text.partition(":")
    if not key.strip():
        raise UsageError(f"--allow {text!r} names no permission", hint="write it as bash:git *, or write")
    if not _known(key.strip()):
        raise UsageError(f"--allow {text!r}: there is no tool {key.strip()!r}", hint=_meant(key.strip()))
    return Rule(key.strip(), pattern.strip() or "*", action, "--allow")


def _known(key: str) -> bool:
    """Whether a key can decide anything; what MCP servers bring is not known here."""
    return any(matches(key, known) for known in KEYS) or key.startswith("mcp") or "__" in key


def _meant(key: str) -> str:
    word = key.partition("(")[0]
    near = find_name(word, KEYS) or nearest(word, KEYS)
    return f"did you mean {near}? Write it as {near}, or {near}:PATTERN" if near else f"there is: {', '.join(KEYS)}"


def _action(value: object, key: str, origin: str) -> Action:
    if value not in get_args(Action):
        raise UsageError(f"{origin}: {key} is {value!r}, which is none of allow, ask, deny")
    return value  # type: ignore[return-value]  # narrowed by the line above


def governs(rule: Rule, need: Need) -> bool:
    """Whether a rule speaks of a need; `edit` covers write, edit and patch."""
    by_key = matches(rule.key, need.key) or (rule.key == "edit" and need.key in EDITS)
    return by_key and matches(rule.pattern, need.subject)


def names_program(rule: Rule, need: Need) -> bool:
    """Whether a rule allows a command and says by name which program it means."""
    name = rule.pattern.partition(" ")[0]
    literal = bool(name) and not set("*?") & set(name) and name == need.subject.partition(" ")[0]
    return rule.action == "allow" and literal and governs(rule, need)


def last_match(rules: Sequence[Rule], need: Need) -> Rule | None:
    """The rule that decides a need, or nothing."""
    return next((rule for rule in reversed(rules) if governs(rule, need)), None)


def strictest(actions: Iterable[Action]) -> Action:
    """Deny over ask over allow; allow when there is nothing to decide."""
    return max(actions, key=STRICTNESS.__getitem__, default="allow")
