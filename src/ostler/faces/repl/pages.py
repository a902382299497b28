"""Many lines in screenfuls: the next one on a key, each line printed once, and nothing else left behind."""

from collections.abc import Sequence

from ostler.drawing.fitting import screenful
from ostler.drawing.paint import Paint
from ostler.faces.repl.console import Console, Menu

MORE, ALL, END = " ", "e", "q"
KEYS = ((MORE, "One screen more"), (ALL, "All of the rest"), (END, "Straight to the end"))


class Pages:
    """What is still to be shown before something can be answered."""

    def __init__(self, console: Console, paint: Paint) -> None:
        self._console = console
        self._paint = paint
        self._left: list[str] = []
        self._total = 0
        self._menu: Menu | None = None

    def __bool__(self) -> bool:
        return bool(self._left)

    def show(self, lines: Sequence[str], menu: Menu) -> None:
        """Lines, and below the last of them what is waited for."""
        self._left, self._total, self._menu = list(lines), len(lines), menu
        self._next()

    def take(self, key: str) -> None:
        """Go on, as the key says."""
        if key == ALL:
            self._print(len(self._left))
        elif key == END:
            skipped = len(self._left) - self._fitting(self._left[::-1])
            if skipped:
                self._console.show([self._paint(f"  … {skipped} lines not shown", "yellow")])
            del self._left[:skipped]
        self._next() if key in (MORE, ALL, END) else self._expect()

    def drop(self) -> None:
        """Nobody needs the rest any more."""
        self._left = []

    def _next(self) -> None:
        self._print(self._fitting(self._left))
        self._expect()

    def _print(self, count: int) -> None:
        self._console.show(self._left[:count])
        del self._left[:count]

    def _expect(self) -> None:
        seen = f"{self._total - len(self._left)} of {self._total} lines"
        more = Menu(f"  -- {seen} · space: more, e: all, q: to the end -- ", KEYS)
        self._console.expect(more if self._left else self._menu)

    def _fitting(self, lines: Sequence[str]) -> int:
        """All of them where nothing is paged."""
        columns, rows = self._console.page
        return screenful(lines, columns, rows) if rows else len(lines)
