"""Taking the prompt away without a trace, also where the window became narrower or the terminal keeps what it clears.

The cursor is in what is typed, and that is the first row: most often, all that is drawn is at the cursor and below it,
wherever that is. Only where more was typed than fits into a row, there is something above the cursor. Terminals that
wrap lines anew make more rows of that. Whoever then takes it away must go up by as many rows more, or a piece of it
stays in the scrollback. Terminals that cut lines off instead must not: there the rows above belong to what was said.
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
MAX_COLUMNS = 500  # columns that a row may have had
REFLOW_PROGRAMS = ("vscode", "WezTerm", "iTerm.app", "Apple_Terminal", "ghostty")


def terminal_reflows(env: Mapping[str, str]) -> bool:
    """Whether the terminal is known to wrap its lines anew."""
    return any(env.get(name) for name in REFLOW_VARIABLES) or env.get("TERM_PROGRAM") in REFLOW_PROGRAMS


def extra_rows(renderer: "Renderer", columns: int) -> int:
    """How many rows further down the cursor is than where it was drawn, in a window of so many columns."""
    screen, size, cursor = renderer._last_screen, renderer._last_size, renderer._cursor_pos
    if screen is None or size is None or not 0 < columns < size.columns:
        return 0
    *above, own = (_row_width(screen.data_buffer[row]) for row in range(cursor.y + 1))
    before = min(cursor.x + 1, own)  # behind the end of what was written, the cursor makes no row
    return sum(max(0, wide - 1) // columns for wide in (*above, before))


def backspace_crosses_wrap(env: Mapping[str, str]) -> bool:
    """Whether the terminal is known to go back with backspaces to where a line begins that it wrapped, as tmux does.

    Not so screen, which goes on to the line above.
    """
    return not env.get("STY") and (bool(env.get("TMUX")) or env.get("TERM", "").startswith("tmux"))


def erase_sequence(x: int, y: int, *, backspace_wraps: bool) -> str:
    """What clears all from where the drawn place 0, 0 is, if the cursor is at that of x, y; and leaves it there.

    Nothing is cleared from the very corner of the screen: tmux takes that for a screen that is cleared as a whole, and
    puts what stood there into the scrollback.
    """
    up = "\b" * (2 * x) + ("\x1b[A" + "\b" * MAX_COLUMNS) * y if backspace_wraps else "\r" + (f"\x1b[{y}A" if y else "")
    return f"\x1b[0m{up} \x1b[J\r\x1b[K"


def _row_width(row: "Mapping[int, object]") -> int:
    """How far a row was written."""
    used = [column + width(str(cell.char)) for column, cell in row.items() if cell.char.strip()]  # type: ignore[attr-defined]
    return max(used, default=0)
