"""The text of the transcript that the user selects with the mouse."""

from typing import NamedTuple

from rich.style import Style
from textual.strip import Strip

from ostler.frontends.tui.transcript.model import TranscriptModel
from ostler.frontends.tui.transcript.viewport import Place, VisibleRow

BULLET, MARGIN = "● ", "  "
REVERSE = Style(reverse=True)


class Mark(NamedTuple):
    """A position in the transcript. It stays valid while the transcript scrolls and grows."""

    place: Place
    row: int
    column: int


class TextSelection(NamedTuple):
    """What is between two marks, in any order."""

    anchor: Mark
    end: Mark

    def columns(self, place: Place, row: int, width: int) -> tuple[int, int]:
        """Return the selected columns of a row: the first, and the one after the last."""
        first, last = sorted((self.anchor, self.end))
        here = (place, row)
        if not first[:2] <= here <= last[:2]:
            return 0, 0
        return first.column if here == first[:2] else 0, last.column + 1 if here == last[:2] else width

    def highlight(self, row: VisibleRow, strip: Strip) -> Strip:
        """Return the strip of a row with the selected part in reverse."""
        left, right = self.columns(row.place, row.row, strip.cell_length)
        if left >= right:
            return strip
        parts = strip.crop(0, left), strip.crop(left, right).apply_style(REVERSE), strip.crop(right, strip.cell_length)
        return Strip.join(parts)

    def text(self, model: TranscriptModel) -> str:
        """Return the selected text without the margin of messages."""
        first, last = sorted((self.anchor, self.end))
        rows = []
        for entry in range(first.place.entry, min(last.place.entry + 1, len(model.entries))):
            for section in range(model.section_count(entry)):
                place = Place(entry, section)
                if not first.place <= place <= last.place:
                    continue
                for number, strip in enumerate(model.strips(*place)):
                    if first[:2] <= (place, number) <= last[:2]:
                        rows.append(self._row_text(place, number, strip))
        return "\n".join(rows).strip("\n")

    def _row_text(self, place: Place, row: int, strip: Strip) -> str:
        left, right = self.columns(place, row, strip.cell_length)
        text = strip.crop(left, right).text.rstrip() if left < right else ""
        return text[len(BULLET) :] if left == 0 and text.startswith((BULLET, MARGIN)) else text
