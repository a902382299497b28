"""Shows long output one page at a time before an answer is accepted."""

from collections.abc import Sequence

from ostler.frontends.repl.console import Console
from ostler.interaction.answer_menu import AnswerMenu
from ostler.rendering.measure import lines_that_fit
from ostler.rendering.style import Styler

MORE_KEY, ALL_KEY, END_KEY = " ", "e", "q"
PAGER_ANSWERS = ((MORE_KEY, "Next page"), (ALL_KEY, "Show all"), (END_KEY, "Skip to the end"))


class Pager:
    """The lines that are still to be shown before a menu."""

    def __init__(self, console: Console, paint: Styler) -> None:
        self._console = console
        self._paint = paint
        self._remaining: list[str] = []
        self._total = 0
        self._menu: AnswerMenu | None = None

    def __bool__(self) -> bool:
        return bool(self._remaining)

    def show(self, lines: Sequence[str], menu: AnswerMenu) -> None:
        """Show lines in pages, and the menu after the last one."""
        self._remaining, self._total, self._menu = list(lines), len(lines), menu
        self._show_page()

    def advance(self, key: str) -> None:
        """Handle a key of the pager; other keys only repeat its prompt."""
        if key == ALL_KEY:
            self._print(len(self._remaining))
        elif key == END_KEY:
            skipped = len(self._remaining) - self._count_fitting(self._remaining[::-1])
            if skipped:
                self._console.show([self._paint(f"  … {skipped} lines not shown", "yellow")])
            del self._remaining[:skipped]
        self._show_page() if key in (MORE_KEY, ALL_KEY, END_KEY) else self._update_menu()

    def drop(self) -> None:
        """Discard the remaining lines."""
        self._remaining = []

    def _show_page(self) -> None:
        self._print(self._count_fitting(self._remaining))
        self._update_menu()

    def _print(self, count: int) -> None:
        self._console.show(self._remaining[:count])
        del self._remaining[:count]

    def _update_menu(self) -> None:
        position = f"{self._total - len(self._remaining)} of {self._total} lines"
        pager_menu = AnswerMenu(f"  -- {position} · space: more, e: all, q: to the end -- ", PAGER_ANSWERS, quick=True)
        self._console.set_menu(pager_menu if self._remaining else self._menu)

    def _count_fitting(self, lines: Sequence[str]) -> int:
        """Return how many lines fit on a page; all of them if the console does not page."""
        columns, rows = self._console.page_size
        return lines_that_fit(lines, columns, rows) if rows else len(lines)
