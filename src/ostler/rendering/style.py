"""Applies colours and text styles where the terminal supports them, and knows its width."""

import os
from collections.abc import Callable, Mapping
from typing import TextIO

_DARK = {
    "bold": "1",
    "dim": "2",
    "italic": "3",
    "underline": "4",
    "strike": "9",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
    "added": "1;32",
    "removed": "1;31",
    "added_line": "32",
    "removed_line": "31",
}
# On a white background, yellow and cyan are unreadable and dim is too faint.
_LIGHT = {
    **_DARK,
    "dim": "90",
    "yellow": "35",
    "cyan": "34",
    "green": "38;5;22",
    "added": "1;38;5;22",
    "added_line": "38;5;22",
}
_MONO = {
    **dict.fromkeys(_DARK, ""),
    "bold": "1",
    "dim": "2",
    "underline": "4",
    "strike": "9",
    "added": "1",
    "removed": "1;4",
}
# The full-screen client gives diffs backgrounds, so their styles need codes of their own; 22 changes nothing here.
SCREEN_CODES = {**_DARK, "added": "22;1;32", "removed": "22;1;31", "added_line": "22;32", "removed_line": "22;31"}
THEMES = {"dark": _DARK, "light": _LIGHT, "mono": _MONO}
_CODES = {**THEMES, "screen": SCREEN_CODES}


class Styler:
    """Applies styles: `paint("text", "bold", "red")` returns styled text, or plain text if disabled."""

    def __init__(self, enabled: bool, theme: str = "dark", columns: Callable[[], int] = lambda: 0) -> None:
        """`columns` returns the current width of the window, or 0 if lines must not be wrapped."""
        self.columns = columns
        self.enabled = enabled
        self.theme = theme if theme in _CODES else "dark"

    def __call__(self, text: str, *styles: str) -> str:
        if not self.enabled or not text:
            return text
        codes = ";".join(filter(None, (_CODES[self.theme][style] for style in styles)))
        return f"\x1b[{codes}m{text}\x1b[0m" if codes else text


def is_colour_enabled(stream: TextIO, env: Mapping[str, str]) -> bool:
    """Return whether to use colour: only on a terminal, unless NO_COLOR, AGENT_NO_COLOR or TERM=dumb is set."""
    if env.get("NO_COLOR") or env.get("AGENT_NO_COLOR") or env.get("TERM") == "dumb":
        return False
    return stream.isatty()


def terminal_columns(stream: TextIO) -> int:
    """Return the current width of the terminal, or 0 if the stream is not one."""
    try:
        return os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        return 0
