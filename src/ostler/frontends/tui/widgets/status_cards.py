"""The status cards at the top: connection, model, context use, cost, speed, git, profile, sandbox, session."""

from collections.abc import Sequence

import msgspec
from rich.segment import Segment
from textual.strip import Strip

from ostler.frontends.tui.widgets.themed import ThemedWidget
from ostler.text.width import clip, width

GAP = 2
BAR_COLUMNS = 8
TALL_ROWS = 20  # windows with fewer rows have the cards in one row, without labels


class StatusCard(msgspec.Struct, frozen=True):
    """A label and a value. With `share` (0 to 1) the value has a bar before it. `style` is a name of the palette.

    With `min_columns`, the value is shortened to the room that is left, but not more than that.
    """

    label: str
    value: str
    style: str = ""
    share: float | None = None
    max_columns: int = 30
    min_columns: int = 0


class StatusCards(ThemedWidget):
    """Shows cards side by side, as many as fit; the most important ones are first."""

    def __init__(self) -> None:
        super().__init__(id="cards")
        self._cards: Sequence[StatusCard] = ()

    def show(self, cards: Sequence[StatusCard]) -> None:
        if cards != self._cards:
            self._cards = cards
            self.refresh()

    def render_line(self, y: int) -> Strip:
        columns = self.size.width
        has_labels = self.size.height > 1
        segments: list[Segment] = [Segment(" ", self._maker.base)]
        used = 1
        for card in self._fitting(columns - 2, has_labels=has_labels):
            if has_labels and y == 0:
                parts = [Segment(clip(card.label, _columns(card, has_labels=True)), self._maker.style("dim"))]
            else:
                parts = list(self._value(card))
            size = _columns(card, has_labels=has_labels)
            padding = " " * (size - sum(part.cell_length for part in parts) + GAP)
            segments += [*parts, Segment(padding, self._maker.base)]
            used += size + GAP
        return Strip(segments).adjust_cell_length(columns, self._maker.base)

    def _fitting(self, columns: int, *, has_labels: bool) -> Sequence[StatusCard]:
        shown: list[StatusCard] = []
        left = columns
        for card in self._cards:
            room = left - (GAP if shown else 0)
            if card.min_columns and room >= card.min_columns:
                card = msgspec.structs.replace(card, max_columns=min(card.max_columns, room))
            if (size := _columns(card, has_labels=has_labels)) <= room:
                shown.append(card)
                left = room - size
        return shown

    def _value(self, card: StatusCard) -> Sequence[Segment]:
        style = self._maker.style(card.style) if card.style else self._maker.base
        text = clip(card.value, card.max_columns)
        if card.share is None:
            return [Segment(text, style)]
        filled = min(round(card.share * BAR_COLUMNS), BAR_COLUMNS)
        colour = "red" if card.share >= 0.9 else "yellow" if card.share >= 0.7 else "green"
        return [
            Segment("━" * filled, self._maker.style(colour)),
            Segment("─" * (BAR_COLUMNS - filled), self._maker.style("track")),
            Segment(f" {text}", style),
        ]


def _columns(card: StatusCard, *, has_labels: bool) -> int:
    value = width(clip(card.value, card.max_columns)) + (BAR_COLUMNS + 1 if card.share is not None else 0)
    return max(value, width(card.label)) if has_labels else value
