"""A row of keys and what they do, as many as fit."""

from collections.abc import Sequence

from ostler.frontends.tui.strips import PAINT
from ostler.frontends.tui.widgets.text_rows import TextRows
from ostler.text.width import width

GAP = "  "


class KeyHints(TextRows):
    """Shows hints, the most important ones first. One that does not fit is left out, never cut off."""

    def __init__(self, *, id: str, margin: int = 0) -> None:
        super().__init__(id=id, margin=margin)
        self._hints: Sequence[tuple[str, str]] = ()

    def show_hints(self, hints: Sequence[tuple[str, str]]) -> None:
        """Show pairs of a key and what it does."""
        self._hints = hints
        self.show([fitting_hints(hints, self.size.width - self.margin_columns)])

    def on_resize(self) -> None:
        self.show_hints(self._hints)


def fitting_hints(hints: Sequence[tuple[str, str]], columns: int) -> str:
    """Return the hints that fit, in their order."""
    shown: list[str] = []
    used = 0
    for key, label in hints:
        size = width(f"{key} {label}") + (len(GAP) if shown else 0)
        if key and used + size <= columns:
            shown.append(f"{PAINT(key, 'cyan')} {PAINT(label, 'dim')}")
            used += size
    return GAP.join(shown)
