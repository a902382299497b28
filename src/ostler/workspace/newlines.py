"""How the lines of a text end, and a text given other ends."""

from typing import Literal

Newline = Literal["\n", "\r\n", "\r", "mixed", ""]


def detect_newline(text: str) -> Newline:
    """The one line end a text uses, "mixed" for several, "" for none."""
    pairs = text.count("\r\n")
    feeds = text.count("\n") - pairs
    returns = text.count("\r") - pairs
    used: list[Newline] = [end for end, count in (("\n", feeds), ("\r\n", pairs), ("\r", returns)) if count]  # type: ignore[misc]
    if not used:
        return ""
    return used[0] if len(used) == 1 else "mixed"


def with_newline(text: str, newline: Newline) -> str:
    """A text written with plain line feeds, in the style of the file it is for; any other text as it is."""
    if newline in ("\r\n", "\r") and "\r" not in text:
        return text.replace("\n", newline)
    return text
