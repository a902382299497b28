"""Which rows of the transcript are visible. Only these are wrapped; the position is kept by entry, not by row."""

from typing import NamedTuple

from textual.strip import Strip

from ostler.frontends.tui.transcript.model import TranscriptModel


class VisibleRow(NamedTuple):
    """One visible row: the index of its entry, its number in the entry, and what it shows."""

    entry: int
    row: int
    strip: Strip


class Viewport:
    """The visible part. While `following`, the last row is visible; otherwise the row `top` stays first."""

    def __init__(self, model: TranscriptModel) -> None:
        self._model = model
        self.following = True
        self._entry = self._row = 0
        self._height = 24

    @property
    def position(self) -> float:
        """The position in the transcript, from 0 to 1, by entries."""
        count = len(self._model.entries)
        return 1.0 if self.following or count < 2 else min(self._entry / (count - 1), 1.0)

    def rows(self, height: int) -> list[VisibleRow]:
        """Return the visible rows, at most `height`."""
        self._height = height
        if not self._model.entries:
            self._entry = self._row = 0
            self.following = True
            return []
        if not self.following:
            self._entry = min(self._entry, len(self._model.entries) - 1)
            visible = self._rows_from(self._entry, self._row, height)
            if len(visible) == height and self._has_more_below(visible[-1]):
                return visible
            self.following = True
        return self._last_rows(height)

    def scroll(self, count: int) -> None:
        """Move by rows: down if positive. At the end, follow again."""
        if not self._model.entries:
            return
        if self.following:
            if count >= 0:
                return
            self._last_rows(self._height)
            self.following = False
        if count < 0:
            self._scroll_up(-count)
        else:
            self._scroll_down(count)

    def scroll_to(self, entry: int, row: int = 0) -> None:
        """Make a row of an entry the first visible one, with some rows before it."""
        self.following = False
        self._entry, self._row = entry, row
        self._scroll_up(min(3, self._height // 4))

    def scroll_to_start(self) -> None:
        self.following = False
        self._entry = self._row = 0

    def follow(self) -> None:
        self.following = True

    def set_columns(self, columns: int) -> None:
        """Change the width. The text at the top stays there, although it is wrapped differently."""
        if columns == self._model.columns:
            return
        if self.following or not self._model.entries:
            self._model.columns = columns
            return
        before = _text_length(self._model.strips(self._entry)[: self._row])
        self._model.columns = columns
        self._row = _row_at(self._model.strips(self._entry), before)

    def _rows_from(self, entry: int, row: int, count: int) -> list[VisibleRow]:
        found: list[VisibleRow] = []
        while len(found) < count and entry < len(self._model.entries):
            strips = self._model.strips(entry)
            for number in range(row, min(len(strips), row + count - len(found))):
                found.append(VisibleRow(entry, number, strips[number]))
            entry, row = entry + 1, 0
        return found

    def _last_rows(self, height: int) -> list[VisibleRow]:
        found: list[VisibleRow] = []
        entry = len(self._model.entries)
        while entry > 0 and len(found) < height:
            entry -= 1
            strips = self._model.strips(entry)
            first = max(len(strips) - (height - len(found)), 0)
            found[:0] = [VisibleRow(entry, number, strips[number]) for number in range(first, len(strips))]
        self._entry, self._row = (found[0].entry, found[0].row) if found else (0, 0)
        return found

    def _has_more_below(self, last: VisibleRow) -> bool:
        if last.row + 1 < len(self._model.strips(last.entry)):
            return True
        return any(self._model.strips(entry) for entry in range(last.entry + 1, len(self._model.entries)))

    def _scroll_up(self, count: int) -> None:
        self._row -= count
        while self._row < 0:
            if self._entry == 0:
                self._row = 0
                return
            self._entry -= 1
            self._row += len(self._model.strips(self._entry))

    def _scroll_down(self, count: int) -> None:
        self._row += count
        while self._row >= len(self._model.strips(self._entry)):
            self._row -= len(self._model.strips(self._entry))
            if self._entry + 1 >= len(self._model.entries):
                self.following = True
                return
            self._entry += 1


def _text_length(strips: list[Strip]) -> int:
    return sum(len("".join(strip.text.split())) for strip in strips)


def _row_at(strips: list[Strip], length: int) -> int:
    """Return the row that contains the character after the first `length`, not counting spaces."""
    for number, strip in enumerate(strips):
        length -= len("".join(strip.text.split()))
        if length < 0:
            return number
    return max(len(strips) - 1, 0)
