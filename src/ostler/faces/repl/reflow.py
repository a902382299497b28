"""Taking the prompt away without a trace, also where the window became narrower or the terminal keeps what it clears.

Terminals that wrap lines anew make more rows of them. Whoever then takes the prompt away must go up by as many rows
more, or a piece of the status stays in the scrollback. Terminals that cut lines off instead must not: there the rows
above belong to what was said.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ostler.text.width import width

if TYPE_CHECKING:
    from prompt_toolkit.renderer import Renderer

SIGNS = (
    *("TMUX", "VTE_VERSION", "KITTY_WINDOW_ID", "WEZTERM_PANE", "ALACRITTY_WINDOW_ID", "KONSOLE_VERSION"),
    *("WT_SESSION", "GHOSTTY_RESOURCES_DIR", "ITERM_SESSION_ID", "ZELLIJ"),
)
PROGRAMS = ("vscode", "WezTerm", "iTerm.app", "Apple_Terminal", "ghostty")


def reflows(env: Mapping[str, str]) -> bool:
    """Whether the terminal is known to wrap its lines anew."""
    return any(env.get(name) for name in SIGNS) or env.get("TERM_PROGRAM") in PROGRAMS


def rows_more(renderer: "Renderer", columns: int) -> int:
    """How many rows further down the cursor is than where it was drawn, in a window of so many columns."""
    screen, size, cursor = renderer._last_screen, renderer._last_size, renderer._cursor_pos
    if screen is None or size is None or not 0 < columns < size.columns:
        return 0
    *above, own = (_columns(screen.data_buffer[row]) for row in range(cursor.y + 1))
    before = min(cursor.x + 1, own)  # behind the end of what was written, the cursor makes no row
    return sum(max(0, wide - 1) // columns for wide in (*above, before))


def rows_cleared(above: int) -> str:
    """What clears all below the cursor, its own row and so many above, and leaves it at the beginning of its row.

    Not in one go from the top: where that is the top of the screen, tmux takes it for a screen that is cleared as a
    whole, and puts what stood there into the scrollback.
    """
    back = f"\x1b[{above}B" if above else ""
    return "\x1b[0m\x1b[J\r\x1b[2K" + "\x1b[A\x1b[2K" * above + back


def _columns(row: "Mapping[int, object]") -> int:
    """How far a row was written."""
    used = [column + width(str(cell.char)) for column, cell in row.items() if cell.char.strip()]  # type: ignore[attr-defined]
    return max(used, default=0)
