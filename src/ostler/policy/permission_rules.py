"""Parses permission rules and finds the rule that applies; the last match wins, no match means ask."""

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from ostler.core.errors import UsageError
from ostler.core.permission import Need, PolicyAction, Rule
from ostler.core.tool_aliases import resolve_tool_name
from ostler.core.tool_declarations import tool_names
from ostler.policy.wildcard import matches

PERMISSION_KEYS = (*tool_names(), "delete", "external_directory", "network", "agent")
EDITING_TOOLS = tool_names(lambda tool: tool.edits_files)
STRICTNESS: Mapping[PolicyAction, int] = {"allow": 0, "ask": 1, "deny": 2}


def parse_rules(permission: Mapping[str, Any] | str, origin: str) -> list[Rule]:
    """Parse one `permission` setting. Rules keep the order of the file; raises `UsageError` for an invalid action."""
    if isinstance(permission, str):
        permission = {"*": permission}
    return [
        Rule(key, pattern, _parse_action(action, f"permission.{key}", origin), origin)
        for key, value in permission.items()
        for pattern, action in (value.items() if isinstance(value, Mapping) else [("*", value)])
    ]


def parse_flag(text: str, servers: Sequence[str] = (), *, later_servers: bool = False) -> Rule:
    """Parse the value of `--allow`: `KEY` or `KEY:PATTERN`. Raises `UsageError`.

    `servers` are the first parts of the names of MCP tools. With `later_servers` there may be more servers, whose
    names are not known yet.
    """
    key, _, pattern = text.partition(":")
    if not key.strip():
        raise UsageError(f"--allow {text!r} does not name a permission", hint="write it as bash:git *, or write")
    if not _is_known_key(key.strip(), servers) and not (later_servers and "_" in key.strip()[1:]):
        raise UsageError(f"--allow {text!r}: there is no tool {key.strip()!r}", hint=_suggest_key(key.strip()))
    return Rule(key.strip(), pattern.strip() or "*", "allow", "--allow")


def allow_flag(need: Need) -> str:
    """Return the `--allow` flag for a need, quoted for a shell: its subject may come from a model."""
    rule = f"{need.key}:{need.rule_pattern or need.subject}"
    return "--allow '" + rule.replace("'", "'\\''") + "'"


def _is_known_key(key: str, servers: Sequence[str]) -> bool:
    """Return whether a key can match a tool; the tools of MCP servers are not known here, so their form is enough."""
    if any(key.startswith(f"{server}_") or matches(key, f"{server}_tool") for server in servers):
        return True
    return any(matches(key, known) for known in PERMISSION_KEYS) or key.startswith("mcp") or "__" in key


def _suggest_key(key: str) -> str:
    word = key.partition("(")[0]
    from ostler.text.closest_name import closest_name

    suggestion = resolve_tool_name(word, PERMISSION_KEYS) or closest_name(word, PERMISSION_KEYS)
    return (
        f"did you mean {suggestion}? Write it as {suggestion}, or {suggestion}:PATTERN"
        if suggestion
        else f"known names: {', '.join(PERMISSION_KEYS)}"
    )


def _parse_action(value: object, key: str, origin: str) -> PolicyAction:
    if value not in get_args(PolicyAction):
        raise UsageError(f"{origin}: {key} is {value!r}; it must be allow, ask or deny")
    return value  # type: ignore[return-value]  # narrowed by the line above


def rule_matches(rule: Rule, need: Need) -> bool:
    """Return whether a rule applies to a need; the key `edit` includes all tools that edit files."""
    if need.implied and rule.key != need.key:
        return False
    key_matches = matches(rule.key, need.key) or (rule.key == "edit" and need.key in EDITING_TOOLS)
    return key_matches and matches(rule.pattern, need.subject)


def names_program(rule: Rule, need: Need) -> bool:
    """Return whether a rule allows a command and names its program without wildcards."""
    name = rule.pattern.partition(" ")[0]
    literal = bool(name) and not set("*?") & set(name) and name == need.subject.partition(" ")[0]
    return rule.action == "allow" and literal and rule_matches(rule, need)


def last_match(rules: Sequence[Rule], need: Need) -> Rule | None:
    """Return the last rule that applies to a need, or None."""
    return next((rule for rule in reversed(rules) if rule_matches(rule, need)), None)


def restricts_key(rules: Sequence[Rule], key: str, *, default: bool) -> bool:
    """Return whether rules may ask about or deny some subject of a key; `default` is the result without a rule."""
    restricts = default
    for rule in rules:
        if matches(rule.key, key) and (rule.action != "allow" or rule.pattern == "*"):
            restricts = rule.action != "allow"
    return restricts
