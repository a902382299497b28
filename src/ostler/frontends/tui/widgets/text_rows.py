"""Rows of styled text that never change by themselves: the activity, the footer, panels."""

from collections.abc import Sequence

from rich.segment import Segment
from textual.strip import Strip

from ostler.frontends.tui.widgets.themed import ThemedWidget


class TextRows(ThemedWidget):
    """Shows sanitised lines with the styles of `Styler`. Lines that do not fit end with `…`."""

    def __init__(self, *, id: str, keep_last: bool = False, margin: int = 0) -> None:
        """`keep_last` shows the last lines if there are too many; `margin` is the number of columns at the left."""
        super().__init__(id=id)
        self.lines: Sequence[str] = ()
        self._keep_last = keep_last
        self.margin_columns = margin

    def show(self, lines: Sequence[str]) -> None:
        lines = tuple(lines)
        if lines != self.lines:
            self.lines = lines
            self.refresh()

    def render_line(self, y: int) -> Strip:
        columns = self.size.width
        skipped = max(len(self.lines) - self.size.height, 0) if self._keep_last else 0
        if y + skipped >= len(self.lines):
            return Strip.blank(columns, self._maker.base)
        strip = self._maker.make(" " * self.margin_columns + self.lines[y + skipped], 0)[0]
        if strip.cell_length > columns:
            strip = Strip([*strip.crop(0, columns - 1), Segment("…", self._maker.base)])
        return strip.adjust_cell_length(columns, self._maker.base)
