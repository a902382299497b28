"""Detects and converts line endings."""

from typing import Literal

Newline = Literal["\n", "\r\n", "\r", "mixed", ""]


def detect_newline(text: str) -> Newline:
    """Return the line ending of a text, "mixed" for several, or "" for none."""
    pairs = text.count("\r\n")
    feeds = text.count("\n") - pairs
    returns = text.count("\r") - pairs
    used: list[Newline] = [ending for ending, count in (("\n", feeds), ("\r\n", pairs), ("\r", returns)) if count]  # type: ignore[misc]
    if not used:
        return ""
    return used[0] if len(used) == 1 else "mixed"


def with_newline(text: str, newline: Newline) -> str:
    """Convert line feeds to the line ending of a file. A text that contains `\\r` is returned unchanged."""
    if newline in ("\r\n", "\r") and "\r" not in text:
        return text.replace("\n", newline)
    return text
