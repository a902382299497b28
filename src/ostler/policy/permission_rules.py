"""Rules as data: reading them from settings, and which one decides. The last that matches wins; silence means ask."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

from ostler.core.errors import UsageError
from ostler.core.permission import Need, PolicyAction, Rule
from ostler.core.tool_aliases import TOOL_ALIASES, resolve_tool_name
from ostler.policy.wildcard import matches
from ostler.text.closest_name import closest_name

PERMISSION_KEYS = (*TOOL_ALIASES, "delete", "external_directory", "network", "agent")
EDIT_TOOLS = frozenset({"write", "edit", "patch"})
STRICTNESS: Mapping[PolicyAction, int] = {"allow": 0, "ask": 1, "deny": 2}


def parse_rules(permission: Mapping[str, Any] | str, origin: str) -> list[Rule]:
    """The rules of one `permission` setting, in the order they were written."""
    if isinstance(permission, str):
        permission = {"*": permission}
    return [
        Rule(key, pattern, _parse_action(action, f"permission.{key}", origin), origin)
        for key, value in permission.items()
        for pattern, action in (value.items() if isinstance(value, Mapping) else [("*", value)])
    ]


def parse_flag(text: str, action: PolicyAction = "allow") -> Rule:
    """`KEY` or `KEY:PATTERN`, as `--allow` takes it."""
    key, _, pattern = text.partition(":")
    if not key.strip():
        raise UsageError(f"--allow {text!r} names no permission", hint="write it as bash:git *, or write")
    if not _is_known_key(key.strip()):
        raise UsageError(f"--allow {text!r}: there is no tool {key.strip()!r}", hint=_suggest_key(key.strip()))
    return Rule(key.strip(), pattern.strip() or "*", action, "--allow")


def _is_known_key(key: str) -> bool:
    """Whether a key can decide anything; what MCP servers bring is not known here."""
    return any(matches(key, known) for known in PERMISSION_KEYS) or key.startswith("mcp") or "__" in key


def _suggest_key(key: str) -> str:
    word = key.partition("(")[0]
    near = resolve_tool_name(word, PERMISSION_KEYS) or closest_name(word, PERMISSION_KEYS)
    return (
        f"did you mean {near}? Write it as {near}, or {near}:PATTERN"
        if near
        else f"there is: {', '.join(PERMISSION_KEYS)}"
    )


def _parse_action(value: object, key: str, origin: str) -> PolicyAction:
    if value not in get_args(PolicyAction):
        raise UsageError(f"{origin}: {key} is {value!r}, which is none of allow, ask, deny")
    return value  # type: ignore[return-value]  # narrowed by the line above


def rule_matches(rule: Rule, need: Need) -> bool:
    """Whether a rule speaks of a need; `edit` covers write, edit and patch."""
    by_key = matches(rule.key, need.key) or (rule.key == "edit" and need.key in EDIT_TOOLS)
    return by_key and matches(rule.pattern, need.subject)


def names_program(rule: Rule, need: Need) -> bool:
    """Whether a rule allows a command and says by name which program it means."""
    name = rule.pattern.partition(" ")[0]
    literal = bool(name) and not set("*?") & set(name) and name == need.subject.partition(" ")[0]
    return rule.action == "allow" and literal and rule_matches(rule, need)


def last_match(rules: Sequence[Rule], need: Need) -> Rule | None:
    """The rule that decides a need, or nothing."""
    return next((rule for rule in reversed(rules) if rule_matches(rule, need)), None)


def strictest(actions: Iterable[PolicyAction]) -> PolicyAction:
    """Deny over ask over allow; allow when there is nothing to decide."""
    return max(actions, key=STRICTNESS.__getitem__, default="allow")
