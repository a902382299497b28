"""What a typed prompt says besides its words: which command it is, and which agent shall work from now on."""

import re

from ostler.knowledge.mentions import find_mentions
from ostler.text.lazy_regex import lazy_regex

AGENT_PREFIX = "agent:"
_SLASH = lazy_regex(r"/([A-Za-z][\w:./+@-]*)(?:\s+(.*))?", re.DOTALL)


def parse_slash_command(text: str) -> tuple[str, str]:
    """The name of the command that a text could be, and what follows it; two empty texts when it is none."""
    found = _SLASH.fullmatch(text.strip())
    return (found[1], (found[2] or "").strip()) if found else ("", "")


def mentioned_agent(text: str) -> str:
    """The agent of the last `@agent:name` in a text, or nothing."""
    names = [path.removeprefix(AGENT_PREFIX) for _, _, path in find_mentions(text) if path.startswith(AGENT_PREFIX)]
    return names[-1] if names else ""


def strip_agent_mentions(text: str) -> str:
    """A text without its `@agent:name`; when nothing is left, only the agent was meant."""
    kept, at = [], 0
    for start, end, path in find_mentions(text):
        if path.startswith(AGENT_PREFIX):
            kept.append(text[at:start])
            at = end
    return "".join([*kept, text[at:]]).strip()
