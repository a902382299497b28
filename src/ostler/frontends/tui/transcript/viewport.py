"""Which rows of the transcript are visible. Only these are wrapped; the position is kept by text, not by row."""

from typing import NamedTuple

from textual.strip import Strip

from ostler.frontends.tui.transcript.model import TranscriptModel


class Place(NamedTuple):
    """A section of an entry; only sections that are visible are wrapped."""

    entry: int
    section: int


class VisibleRow(NamedTuple):
    """One visible row: its section, its number there, and what it shows."""

    place: Place
    row: int
    strip: Strip

    @property
    def entry(self) -> int:
        return self.place.entry


START = Place(0, 0)


class Viewport:
    """The visible part. While `following`, the last row is visible; otherwise the row `top` stays first."""

    def __init__(self, model: TranscriptModel) -> None:
        self._model = model
        self.following = True
        self._place, self._row = START, 0
        self._text_before = 0  # characters of the section before the first row, not counting spaces
        self._first_text = 0  # the section of the entry with which its text starts
        self._height = 24

    @property
    def position(self) -> float:
        """The position in the transcript, from 0 to 1, by entries."""
        count = len(self._model.entries)
        return 1.0 if self.following or count < 2 else min(self._place.entry / (count - 1), 1.0)

    def rows(self, height: int) -> list[VisibleRow]:
        """Return the visible rows, at most `height`."""
        self._height = height
        if not self._model.entries:
            self._place, self._row = START, 0
            self.following = True
            return []
        if not self.following:
            self._find_top()
            visible = self._rows_from(self._place, self._row, height)
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
        else:
            self._find_top()
        if count < 0:
            self._scroll_up(-count)
        else:
            self._scroll_down(count)
        self._keep_top()

    def scroll_to(self, entry: int, row: int = 0) -> None:
        """Make a row of an entry the first visible one, with some rows before it."""
        self.following = False
        self._place, self._row = Place(entry, 0), 0
        self._scroll_down(row)
        self._scroll_up(min(3, self._height // 4))
        self._keep_top()

    def scroll_to_start(self) -> None:
        self.following = False
        self._place, self._row = START, 0
        if self._model.entries:
            self._keep_top()

    def follow(self) -> None:
        self.following = True

    def set_columns(self, columns: int) -> None:
        """Change the width. The text at the top stays there, although it is wrapped differently."""
        if columns == self._model.columns:
            return
        if self.following or not self._model.entries:
            self._model.columns = columns
            return
        self._find_top()
        self._model.columns = columns
        self._find_top()

    def _keep_top(self) -> None:
        """Remember the text at the top, to find it again after its section was wrapped or divided differently."""
        self._text_before = _text_length(self._strips(self._place)[: self._row])
        self._first_text = self._model.first_text_section(self._place.entry)

    def _find_top(self) -> None:
        """Find the row of the text at the top, or the nearest one if it was removed."""
        entry = min(self._place.entry, len(self._model.entries) - 1)
        section, first_text = self._place.section, self._model.first_text_section(entry)
        if section >= self._first_text:
            section += first_text - self._first_text  # reasoning is shown before the text when the message is complete
        self._first_text = first_text
        self._place = Place(entry, min(section, self._model.section_count(entry) - 1))
        strips = self._strips(self._place)
        if self._row >= len(strips) or _text_length(strips[: self._row]) != self._text_before:
            self._row = _row_at(strips, self._text_before)

    def _strips(self, place: Place) -> list[Strip]:
        return self._model.strips(*place)

    def _next(self, place: Place) -> Place | None:
        if place.section + 1 < self._model.section_count(place.entry):
            return Place(place.entry, place.section + 1)
        return Place(place.entry + 1, 0) if place.entry + 1 < len(self._model.entries) else None

    def _previous(self, place: Place) -> Place | None:
        if place.section:
            return Place(place.entry, place.section - 1)
        return self._last_of(place.entry - 1) if place.entry else None

    def _last_of(self, entry: int) -> Place:
        return Place(entry, self._model.section_count(entry) - 1)

    def _rows_from(self, first: Place, row: int, count: int) -> list[VisibleRow]:
        found: list[VisibleRow] = []
        place: Place | None = first
        while len(found) < count and place:
            strips = self._strips(place)
            for number in range(row, min(len(strips), row + count - len(found))):
                found.append(VisibleRow(place, number, strips[number]))
            place, row = self._next(place), 0
        return found

    def _last_rows(self, height: int) -> list[VisibleRow]:
        found: list[VisibleRow] = []
        place: Place | None = self._last_of(len(self._model.entries) - 1)
        while place and len(found) < height:
            strips = self._strips(place)
            first = max(len(strips) - (height - len(found)), 0)
            found[:0] = [VisibleRow(place, number, strips[number]) for number in range(first, len(strips))]
            place = self._previous(place)
        self._place, self._row = (found[0].place, found[0].row) if found else (START, 0)
        return found

    def _has_more_below(self, last: VisibleRow) -> bool:
        if last.row + 1 < len(self._strips(last.place)):
            return True
        place = self._next(last.place)
        while place and not self._strips(place):
            place = self._next(place)
        return place is not None

    def _scroll_up(self, count: int) -> None:
        self._row -= count
        while self._row < 0:
            previous = self._previous(self._place)
            if previous is None:
                self._row = 0
                return
            self._place = previous
            self._row += len(self._strips(previous))

    def _scroll_down(self, count: int) -> None:
        self._row += count
        while self._row >= (rows := len(self._strips(self._place))):
            self._row -= rows
            following = self._next(self._place)
            if following is None:
                self.following = True
                return
            self._place = following


def _text_length(strips: list[Strip]) -> int:
    return sum(len("".join(strip.text.split())) for strip in strips)


def _row_at(strips: list[Strip], length: int) -> int:
    """Return the row that contains the character after the first `length`, not counting spaces."""
    for number, strip in enumerate(strips):
        length -= len("".join(strip.text.split()))
        if length < 0:
            return number
    return max(len(strips) - 1, 0)
