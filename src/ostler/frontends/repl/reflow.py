"""Erases the prompt completely, also after the window was resized and the terminal rewrapped its lines.

The typed text is drawn first and contains the cursor, so usually nothing has to be erased above the cursor. Only text
of more than one row has rows above it. If the window gets narrower, some terminals rewrap these into more rows; then
the eraser must go up by that many more rows, or part of the text stays in the scrollback. Other terminals truncate
lines instead; there, the rows above belong to earlier output and must not be erased.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ostler.text.width import width

if TYPE_CHECKING:
    from prompt_toolkit.renderer import Renderer

REFLOW_VARIABLES = (
    *("TMUX", "VTE_VERSION", "KITTY_WINDOW_ID", "WEZTERM_PANE", "ALACRITTY_WINDOW_ID", "KONSOLE_VERSION"),
    *("WT_SESSION", "GHOSTTY_RESOURCES_DIR", "ITERM_SESSION_ID", "ZELLIJ"),
)
MAX_COLUMNS = 500  # maximum columns of a row
REFLOW_PROGRAMS = ("vscode", "WezTerm", "iTerm.app", "Apple_Terminal", "ghostty")


def terminal_reflows(env: Mapping[str, str]) -> bool:
    """Return whether the terminal is known to rewrap lines when it is resized."""
    return any(env.get(name) for name in REFLOW_VARIABLES) or env.get("TERM_PROGRAM") in REFLOW_PROGRAMS


def extra_rows(renderer: "Renderer", columns: int) -> int:
    """Return how many rows the cursor moved down when the window became `columns` wide."""
    screen, size, cursor = renderer._last_screen, renderer._last_size, renderer._cursor_pos
    if screen is None or size is None or not 0 < columns < size.columns:
        return 0
    *above, current = (_row_width(screen.data_buffer[row]) for row in range(cursor.y + 1))
    before = min(cursor.x + 1, current)  # a cursor after the end of the text adds no row
    return sum(max(0, row_width - 1) // columns for row_width in (*above, before))


def backspace_crosses_wrap(env: Mapping[str, str]) -> bool:
    """Return whether backspaces move the cursor to the start of a wrapped line but not further, as in tmux.

    In screen they continue to the line above.
    """
    return not env.get("STY") and (bool(env.get("TMUX")) or env.get("TERM", "").startswith("tmux"))


def erase_sequence(x: int, y: int, *, backspace_wraps: bool) -> str:
    """Return the escape sequence that moves the cursor from column x, row y of the prompt to its start and erases it.

    It never clears from the top left corner of the screen: tmux would treat that as clearing the whole screen and move
    its content to the scrollback.
    """
    up = "\b" * (2 * x) + ("\x1b[A" + "\b" * MAX_COLUMNS) * y if backspace_wraps else "\r" + (f"\x1b[{y}A" if y else "")
    return f"\x1b[0m{up} \x1b[J\r\x1b[K"


def _row_width(row: "Mapping[int, object]") -> int:
    """Return the number of columns that are used in a row."""
    used = [column + width(str(cell.char)) for column, cell in row.items() if cell.char.strip()]  # type: ignore[attr-defined]
    return max(used, default=0)
