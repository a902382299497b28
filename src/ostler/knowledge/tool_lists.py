"""Parses tool lists as other agents write them, such as `Read, Bash(git add:*)`."""

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from ostler.core.permission import PolicyAction, Rule

MAX_TOOLS = 200
# Names that other agents use for Ostler's tools, in lower case.
_TOOL_ALIASES: Mapping[str, str] = {
    "multiedit": "edit",
    "notebookedit": "edit",
    "ls": "list",
    "agent": "task",
    "bashoutput": "bash",
    "killbash": "bash",
    "killshell": "bash",
    "slashcommand": "skill",
    "apply_patch": "patch",
}

ToolSwitches = tuple[tuple[str, bool], ...]


class ToolPattern(msgspec.Struct, frozen=True):
    """A tool, and the pattern of the arguments it may be used with."""

    tool: str
    pattern: str = "*"


def parse_tool_list(value: Any) -> list[ToolPattern]:
    """Parse a tool list, given as a string or a list of strings."""
    texts = value if isinstance(value, list) else [value]
    words = (word for text in texts if isinstance(text, str) for word in _split_names(text))
    return [_parse_pattern(word) for word, _ in zip(words, range(MAX_TOOLS), strict=False)]


def allow_only(tools: Iterable[ToolPattern]) -> ToolSwitches:
    """Return switches that allow only these tools."""
    return (("*", False), *((name, True) for name in dict.fromkeys(tool.tool for tool in tools)))


def deny_tools(tools: Iterable[ToolPattern]) -> ToolSwitches:
    """Return switches that disable these tools."""
    return tuple((name, False) for name in dict.fromkeys(tool.tool for tool in tools))


def parse_switches(value: Mapping[str, Any]) -> ToolSwitches:
    """Convert names with true or false to switches; any other value is false."""
    return tuple((_parse_pattern(name).tool, parse_bool(enabled)) for name, enabled in list(value.items())[:MAX_TOOLS])


def is_tool_allowed(tool: str, layers: Sequence[ToolSwitches]) -> bool:
    """Return whether every layer allows a tool. In a layer the last matching switch decides; no match allows it."""
    return all(
        next((enabled for name, enabled in reversed(layer) if fnmatchcase(tool, name)), True) for layer in layers
    )


def restriction_rules(tools: Sequence[ToolPattern], origin: str) -> tuple[Rule, ...]:
    """Return rules that restrict tools to their patterns, except tools that are also named without a pattern."""
    unrestricted = {tool.tool for tool in tools if tool.pattern == "*"}
    restricted = [tool for tool in tools if tool.tool not in unrestricted]
    denied = dict.fromkeys(tool.tool for tool in restricted)
    return (*(Rule(name, "*", "deny", origin) for name in denied), *make_rules(restricted, "allow", origin))


def make_rules(tools: Iterable[ToolPattern], action: PolicyAction, origin: str) -> tuple[Rule, ...]:
    """Return one rule for each tool."""
    return tuple(Rule(tool.tool, tool.pattern, action, origin) for tool in tools)


def parse_bool(value: Any) -> bool:
    """Return whether a value is true or a word for it, such as `yes` or `on`."""
    return value is True or (isinstance(value, str) and value.strip().lower() in ("true", "yes", "on", "1"))


def _split_names(text: str) -> list[str]:
    """Split a text at commas and whitespace outside of parentheses."""
    words: list[str] = []
    start = depth = 0
    for index, char in enumerate(text):
        depth += (char == "(") - (char == ")" and depth > 0)
        if depth == 0 and (char == "," or char.isspace()):
            words.append(text[start:index])
            start = index + 1
    return [word for word in [*words, text[start:]] if word]


def _parse_pattern(word: str) -> ToolPattern:
    """Parse a name with an optional pattern: `Bash(git add:*)` is `bash` for `git add *`."""
    name, opened, rest = word.partition("(")
    lower = name.strip().lower()
    tool = _TOOL_ALIASES.get(lower, lower) if "__" not in name else name.strip()
    pattern = rest.removesuffix(")").strip() if opened else "*"
    if pattern.endswith(":*"):
        pattern = f"{pattern[:-2]} *"
    return ToolPattern(tool, pattern.removeprefix("./") or "*")
