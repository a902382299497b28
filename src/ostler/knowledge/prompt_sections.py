"""A piece of the prompt with its name and where it comes from; and how a file's text is framed in it."""

import re

import msgspec

MAX_FILE_BYTES = 32 * 1024


class PromptSection(msgspec.Struct, frozen=True):
    """One piece of what every request begins with."""

    name: str
    origin: str
    text: str

    @property
    def size(self) -> int:
        """Its bytes; a model's tokens are about a quarter of them."""
        return len(self.text.encode())


def truncate(text: str, origin: str, size: int, limit: int = MAX_FILE_BYTES) -> str:
    """The beginning of a text, with a marker that says where the rest is."""
    raw = text.encode("utf-8", "replace")
    if len(raw) <= limit:
        return text
    end = raw.rfind(b"\n", limit - limit // 8, limit) + 1 or limit
    return f"{raw[:end].decode('utf-8', 'ignore').rstrip()}\n[... cut here: {origin} has {size} bytes ...]"


def frame_rules(text: str, origin: str) -> str:
    """A file's text between marks that it cannot close or open by itself."""
    inert = re.sub(r"<(?=/?\s{0,20}rules\b)", "&lt;", text, flags=re.IGNORECASE)
    name = origin.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    return f'<rules from="{name}">\n{inert.strip()}\n</rules>'
