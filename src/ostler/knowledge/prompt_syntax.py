"""Parses `/command` and `@agent:name` in a typed prompt."""

import re

from ostler.knowledge.mentions import find_mentions, typed_mentions
from ostler.text.lazy_regex import lazy_regex

AGENT_PREFIX = "agent:"
_SLASH = lazy_regex(r"/([A-Za-z][\w:./+@-]*)(?:\s+(.*))?", re.DOTALL)


def parse_slash_command(text: str) -> tuple[str, str]:
    """Return the name and the arguments of a slash command, or two empty strings."""
    match = _SLASH.fullmatch(text.strip())
    return (match[1], (match[2] or "").strip()) if match else ("", "")


def mentioned_agent(text: str, pasted: str = "") -> str:
    """Return the agent of the last `@agent:name` that the user typed, or an empty string."""
    names = [
        path.removeprefix(AGENT_PREFIX)
        for _, _, path, typed in typed_mentions(text, pasted)
        if typed and path.startswith(AGENT_PREFIX)
    ]
    return names[-1] if names else ""


def strip_agent_mentions(text: str) -> str:
    """Remove all `@agent:name` from a text. The result is empty if the text only selects an agent."""
    parts, position = [], 0
    for start, end, path in find_mentions(text):
        if path.startswith(AGENT_PREFIX):
            parts.append(text[position:start])
            position = end
    return "".join([*parts, text[position:]]).strip()
