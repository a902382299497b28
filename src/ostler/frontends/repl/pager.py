"""Many lines in screenfuls: the next one on a key, each line printed once, and nothing else left behind."""

from collections.abc import Sequence

from ostler.frontends.repl.console import AnswerMenu, Console
from ostler.rendering.measure import lines_that_fit
from ostler.rendering.style import Styler

MORE_KEY, ALL_KEY, END_KEY = " ", "e", "q"
PAGER_ANSWERS = ((MORE_KEY, "One screen more"), (ALL_KEY, "All of the rest"), (END_KEY, "Straight to the end"))


class Pager:
    """What is still to be shown before something can be answered."""

    def __init__(self, console: Console, paint: Styler) -> None:
        self._console = console
        self._paint = paint
        self._remaining: list[str] = []
        self._total = 0
        self._menu: AnswerMenu | None = None

    def __bool__(self) -> bool:
        return bool(self._remaining)

    def show(self, lines: Sequence[str], menu: AnswerMenu) -> None:
        """Lines, and below the last of them what is waited for."""
        self._remaining, self._total, self._menu = list(lines), len(lines), menu
        self._show_page()

    def advance(self, key: str) -> None:
        """Go on, as the key says."""
        if key == ALL_KEY:
            self._print(len(self._remaining))
        elif key == END_KEY:
            skipped = len(self._remaining) - self._count_fitting(self._remaining[::-1])
            if skipped:
                self._console.show([self._paint(f"  … {skipped} lines not shown", "yellow")])
            del self._remaining[:skipped]
        self._show_page() if key in (MORE_KEY, ALL_KEY, END_KEY) else self._update_menu()

    def drop(self) -> None:
        """Nobody needs the rest any more."""
        self._remaining = []

    def _show_page(self) -> None:
        self._print(self._count_fitting(self._remaining))
        self._update_menu()

    def _print(self, count: int) -> None:
        self._console.show(self._remaining[:count])
        del self._remaining[:count]

    def _update_menu(self) -> None:
        seen = f"{self._total - len(self._remaining)} of {self._total} lines"
        more = AnswerMenu(f"  -- {seen} · space: more, e: all, q: to the end -- ", PAGER_ANSWERS)
        self._console.set_menu(more if self._remaining else self._menu)

    def _count_fitting(self, lines: Sequence[str]) -> int:
        """All of them where nothing is paged."""
        columns, rows = self._console.page_size
        return lines_that_fit(lines, columns, rows) if rows else len(lines)
