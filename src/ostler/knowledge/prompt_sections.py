"""Defines a section of the system prompt and how file content is framed in it."""

import re

import msgspec

MAX_FILE_BYTES = 32 * 1024


class PromptSection(msgspec.Struct, frozen=True):
    """A section of the system prompt."""

    name: str
    origin: str
    text: str

    @property
    def size(self) -> int:
        """Size in bytes; about four times the number of tokens."""
        return len(self.text.encode())


def truncate(text: str, origin: str, size: int, limit: int = MAX_FILE_BYTES) -> str:
    """Truncate a text at `limit` bytes, with a marker that names the file and its full size."""
    raw = text.encode("utf-8", "replace")
    if len(raw) <= limit:
        return text
    end = raw.rfind(b"\n", limit - limit // 8, limit) + 1 or limit
    return f"{raw[:end].decode('utf-8', 'ignore').rstrip()}\n[... truncated: {origin} has {size} bytes ...]"


def frame_rules(text: str, origin: str) -> str:
    """Put a file's text between `<rules>` tags, which the text itself cannot close."""
    escaped = re.sub(r"<(?=/?\s{0,20}rules\b)", "&lt;", text, flags=re.IGNORECASE)
    name = origin.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    return f'<rules from="{name}">\n{escaped.strip()}\n</rules>'
