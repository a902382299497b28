"""Rows of styled text that can be scrolled, for dialogs and panels."""

from collections.abc import Sequence

from rich.segment import Segment
from textual import events
from textual.message import Message
from textual.strip import Strip

from ostler.frontends.tui.widgets.themed import ScrolledWidget
from ostler.rendering.measure import plain_text
from ostler.rendering.wrapping import wrap
from ostler.text.width import width

HANGING_COLUMNS = 2


class ScrollRows(ScrolledWidget):
    """Shows sanitised lines with the styles of `Styler`, folded to its width."""

    class Changed(Message):
        """Other rows are visible, or the lines were folded again."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.by_words = True  # whether long lines are wrapped between words; otherwise exactly at the last column
        self.seen_end = False  # whether the last row was visible since the lines were set
        self._lines: Sequence[str] = ()
        self._strips: list[Strip] = []
        self._top = 0
        self._is_at_end = False  # the end stays visible if the height changes

    @property
    def row_count(self) -> int:
        return len(self._strips)

    @property
    def rows_below(self) -> int:
        return max(len(self._strips) - self._top - self.size.height, 0)

    def show(self, lines: Sequence[str]) -> None:
        self._lines, self._top, self.seen_end = tuple(lines), 0, False
        self._is_at_end = False
        self._wrap()

    def _wrap(self) -> None:
        if not self.size.width:
            return  # not laid out yet; `on_resize` follows
        self._strips = self._make(self._lines, max(self.size.width - 1, 8))
        last = max(len(self._strips) - self.size.height, 0)
        self._top = last if self._is_at_end and self._top else min(self._top, last)
        self._note_change()

    def _make(self, lines: Sequence[str], columns: int) -> list[Strip]:
        rows = [row for line in lines for row in (_wrap_words(line, columns) if self.by_words else [line])]
        return [strip for row in rows for strip in self._maker.make(row, columns)]

    def count_rows(self, lines: Sequence[str], columns: int) -> int:
        """Return how many rows these lines need in a widget of this width."""
        return len(self._make(lines, max(columns - 1, 8)))

    def scroll_rows(self, count: int) -> None:
        self._top = min(max(self._top + count, 0), max(len(self._strips) - self.size.height, 0))
        self._note_change()

    def page(self, direction: int) -> None:
        self.scroll_rows(direction * max(self.size.height - 1, 1))

    def _note_change(self) -> None:
        self._is_at_end = bool(self.size.height) and not self.rows_below
        self.seen_end = self.seen_end or self._is_at_end
        self.refresh()
        self.post_message(self.Changed())

    def use_theme(self) -> None:
        super().use_theme()
        self._wrap()

    def on_resize(self, event: events.Resize) -> None:
        self._wrap()

    def render_line(self, y: int) -> Strip:
        columns, base = self.size.width, self._maker.base
        number = self._top + y
        strip = self._strips[number] if number < len(self._strips) else Strip.blank(0)
        strip = strip.adjust_cell_length(columns - 1, base)
        return Strip([*strip, self._bar_segment(y)], columns)

    def _bar_segment(self, y: int) -> Segment:
        count, height = len(self._strips), self.size.height
        if count <= height:
            return Segment(" ", self._maker.base)
        size = max(height * height // count, 1)
        start = round(self._top / (count - height) * (height - size))
        name = "thumb" if start <= y < start + size else "track"
        return Segment("▐" if name == "thumb" else " ", self._maker.style(name))


def _wrap_words(line: str, columns: int) -> list[str]:
    """Wrap a line between words, below its start. A line in which spaces would get lost is not wrapped."""
    plain = plain_text(line)
    indent = " " * (len(plain) - len(plain.lstrip(" ")) + HANGING_COLUMNS)
    rows = wrap(line, columns, indent) if width(plain) > columns else [line]
    first, *more = map(plain_text, rows)
    is_complete = " ".join([first, *(row.removeprefix(indent) for row in more)]).rstrip() == plain.rstrip()
    return rows if is_complete else [line]
