"""What lines are drawn on: colour, where it is wanted and can be shown, and how wide it is."""

import os
from collections.abc import Callable, Mapping
from typing import TextIO

_DARK = {
    "bold": "1",
    "dim": "2",
    "italic": "3",
    "underline": "4",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
    "added": "1;32",
    "removed": "1;31",
}
# On white, yellow and cyan cannot be read, and dim is too faint.
_LIGHT = {**_DARK, "dim": "90", "yellow": "35", "cyan": "34", "green": "38;5;22", "added": "1;38;5;22"}
_MONO = {**dict.fromkeys(_DARK, ""), "bold": "1", "dim": "2", "underline": "4", "added": "1", "removed": "1;4"}
THEMES = {"dark": _DARK, "light": _LIGHT, "mono": _MONO}


class Styler:
    """`paint("text", "bold", "red")` is coloured, or plain where colour is off."""

    def __init__(self, enabled: bool, theme: str = "dark", columns: Callable[[], int] = lambda: 0) -> None:
        """`columns` tells how wide the window is now; 0 where it has no width, and lines stay as they are."""
        self.columns = columns
        self.enabled = enabled
        self.theme = theme if theme in THEMES else "dark"

    def __call__(self, text: str, *styles: str) -> str:
        if not self.enabled or not text:
            return text
        codes = ";".join(filter(None, (THEMES[self.theme][style] for style in styles)))
        return f"\x1b[{codes}m{text}\x1b[0m" if codes else text


def is_colour_enabled(stream: TextIO, env: Mapping[str, str]) -> bool:
    """Off by NO_COLOR, AGENT_NO_COLOR, TERM=dumb, or when nobody looks."""
    if env.get("NO_COLOR") or env.get("AGENT_NO_COLOR") or env.get("TERM") == "dumb":
        return False
    return stream.isatty()


def terminal_columns(stream: TextIO) -> int:
    """How wide the terminal is now; 0 where there is none."""
    try:
        return os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        return 0
