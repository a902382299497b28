"""Lists of tools as other agents write them: `Read, Bash(git add:*)`, a YAML list, or names switched on and off."""

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from ostler.core.permission import PolicyAction, Rule

MAX_TOOLS = 200
# Names that other agents have for our tools; case makes no difference.
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
    """A tool, and the pattern of what it may be used for."""

    tool: str
    pattern: str = "*"


def parse_tool_list(value: Any) -> list[ToolPattern]:
    """The tools of a list, whether it is text or a list of texts."""
    texts = value if isinstance(value, list) else [value]
    words = (word for text in texts if isinstance(text, str) for word in _split_names(text))
    return [_parse_pattern(word) for word, _ in zip(words, range(MAX_TOOLS), strict=False)]


def allow_only(tools: Iterable[ToolPattern]) -> ToolSwitches:
    """Switches that leave these tools and no others."""
    return (("*", False), *((name, True) for name in dict.fromkeys(named.tool for named in tools)))


def deny_tools(tools: Iterable[ToolPattern]) -> ToolSwitches:
    """Switches that take these tools away."""
    return tuple((name, False) for name in dict.fromkeys(named.tool for named in tools))


def parse_switches(value: Mapping[str, Any]) -> ToolSwitches:
    """Switches from names with true or false; what is neither is false."""
    return tuple((_parse_pattern(name).tool, parse_bool(on)) for name, on in list(value.items())[:MAX_TOOLS])


def is_tool_allowed(tool: str, layers: Sequence[ToolSwitches]) -> bool:
    """Whether every layer leaves a tool: in each the last switch that fits decides, and none that fits leaves it."""
    return all(next((on for name, on in reversed(layer) if fnmatchcase(tool, name)), True) for layer in layers)


def restriction_rules(tools: Sequence[ToolPattern], origin: str) -> tuple[Rule, ...]:
    """Rules that confine a tool to the patterns it is named with, where it is never named without one."""
    free = {named.tool for named in tools if named.pattern == "*"}
    bound = [named for named in tools if named.tool not in free]
    denied = dict.fromkeys(named.tool for named in bound)
    return (*(Rule(name, "*", "deny", origin) for name in denied), *make_rules(bound, "allow", origin))


def make_rules(tools: Iterable[ToolPattern], action: PolicyAction, origin: str) -> tuple[Rule, ...]:
    """One rule for each."""
    return tuple(Rule(named.tool, named.pattern, action, origin) for named in tools)


def parse_bool(value: Any) -> bool:
    """What a field that is text means by yes."""
    return value is True or (isinstance(value, str) and value.strip().lower() in ("true", "yes", "on", "1"))


def _split_names(text: str) -> list[str]:
    """The names in a text, separated by commas or blanks outside of parentheses."""
    words: list[str] = []
    start = depth = 0
    for at, char in enumerate(text):
        depth += (char == "(") - (char == ")" and depth > 0)
        if depth == 0 and (char == "," or char.isspace()):
            words.append(text[start:at])
            start = at + 1
    return [word for word in [*words, text[start:]] if word]


def _parse_pattern(word: str) -> ToolPattern:
    """`Bash(git add:*)` is our `bash` for `git add *`."""
    name, opened, rest = word.partition("(")
    lower = name.strip().lower()
    tool = _TOOL_ALIASES.get(lower, lower) if "__" not in name else name.strip()
    pattern = rest.removesuffix(")").strip() if opened else "*"
    if pattern.endswith(":*"):
        pattern = f"{pattern[:-2]} *"
    return ToolPattern(tool, pattern.removeprefix("./") or "*")
