"""Lists of tools as other agents write them: `Read, Bash(git add:*)`, a YAML list, or names switched on and off."""

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from ostler.vocabulary.permission import Action, Rule

MOST_NAMES = 200
# Names that other agents have for our tools; case makes no difference.
_OURS: Mapping[str, str] = {
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

Switches = tuple[tuple[str, bool], ...]


class Named(msgspec.Struct, frozen=True):
    """A tool, and the pattern of what it may be used for."""

    tool: str
    pattern: str = "*"


def parse_list(value: Any) -> list[Named]:
    """The tools of a list, whether it is text or a list of texts."""
    texts = value if isinstance(value, list) else [value]
    words = (word for text in texts if isinstance(text, str) for word in _words(text))
    return [_named(word) for word, _ in zip(words, range(MOST_NAMES), strict=False)]


def only(tools: Iterable[Named]) -> Switches:
    """Switches that leave these tools and no others."""
    return (("*", False), *((name, True) for name in dict.fromkeys(named.tool for named in tools)))


def without(tools: Iterable[Named]) -> Switches:
    """Switches that take these tools away."""
    return tuple((name, False) for name in dict.fromkeys(named.tool for named in tools))


def switched(value: Mapping[str, Any]) -> Switches:
    """Switches from names with true or false; what is neither is false."""
    return tuple((_named(name).tool, truth(on)) for name, on in list(value.items())[:MOST_NAMES])


def offered(tool: str, layers: Sequence[Switches]) -> bool:
    """Whether every layer leaves a tool: in each the last switch that fits decides, and none that fits leaves it."""
    return all(next((on for name, on in reversed(layer) if fnmatchcase(tool, name)), True) for layer in layers)


def limits(tools: Sequence[Named], origin: str) -> tuple[Rule, ...]:
    """Rules that confine a tool to the patterns it is named with, where it is never named without one."""
    free = {named.tool for named in tools if named.pattern == "*"}
    bound = [named for named in tools if named.tool not in free]
    denied = dict.fromkeys(named.tool for named in bound)
    return (*(Rule(name, "*", "deny", origin) for name in denied), *rules(bound, "allow", origin))


def rules(tools: Iterable[Named], action: Action, origin: str) -> tuple[Rule, ...]:
    """One rule for each."""
    return tuple(Rule(named.tool, named.pattern, action, origin) for named in tools)


def truth(value: Any) -> bool:
    """What a field that is text means by yes."""
    return value is True or (isinstance(value, str) and value.strip().lower() in ("true", "yes", "on", "1"))


def _words(text: str) -> list[str]:
    """The names in a text, separated by commas or blanks outside of parentheses."""
    words: list[str] = []
    start = depth = 0
    for at, char in enumerate(text):
        depth += (char == "(") - (char == ")" and depth > 0)
        if depth == 0 and (char == "," or char.isspace()):
            words.append(text[start:at])
            start = at + 1
    return [word for word in [*words, text[start:]] if word]


def _named(word: str) -> Named:
    """`Bash(git add:*)` is our `bash` for `git add *`."""
    name, opened, rest = word.partition("(")
    lower = name.strip().lower()
    tool = _OURS.get(lower, lower) if "__" not in name else name.strip()
    pattern = rest.removesuffix(")").strip() if opened else "*"
    if pattern.endswith(":*"):
        pattern = f"{pattern[:-2]} *"
    return Named(tool, pattern.removeprefix("./") or "*")
