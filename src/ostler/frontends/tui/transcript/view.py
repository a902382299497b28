"""The widget of the transcript: draws the visible rows and nothing else."""

import time
from collections.abc import Iterator
from typing import ClassVar

from rich.segment import Segment
from textual import events
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip

from ostler.frontends.tui.transcript.model import TranscriptModel
from ostler.frontends.tui.transcript.search import highlight
from ostler.frontends.tui.transcript.selection import Mark, TextSelection
from ostler.frontends.tui.transcript.viewport import Viewport, VisibleRow
from ostler.frontends.tui.widgets.themed import ScrolledWidget
from ostler.rendering.measure import count_columns

THUMB_ROWS = 3


class TranscriptView(ScrolledWidget):
    """Shows a `TranscriptModel`. Frames are limited, so that fast streams do not slow down typing."""

    DEFAULT_CSS = "TranscriptView { width: 1fr; height: 1fr; background: $background; color: $foreground; }"
    ALLOW_SELECT: ClassVar[bool] = False

    class Clicked(Message):
        """An entry was clicked."""

        def __init__(self, entry: int) -> None:
            super().__init__()
            self.entry = entry

    class Selected(Message):
        """Text was selected with the mouse."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(self, frames_per_second: float = 30.0) -> None:
        super().__init__(id="transcript")
        self.model = TranscriptModel(self._maker, self._on_model_change)
        self.details = False  # whether new models show calls in full
        self.viewport = Viewport(self.model)
        self.query_text = ""  # text to highlight
        self.selected: int | None = None  # the entry that keys act on
        self.welcome: list[str] = []  # shown while there are no entries
        self._frame_seconds = 1.0 / frames_per_second
        self._covered = 0  # rows at the bottom that a dialog covers
        self._visible: list[VisibleRow] = []
        self._last_frame = 0.0
        self._is_scheduled = False
        self._mouse_down: Mark | None = None  # where the left button was pressed
        self._selection: TextSelection | None = None

    # -- drawing -------------------------------------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        columns = self.size.width
        offset = y - self._first_line
        if not 0 <= offset < len(self._visible):
            return self._render_welcome(y, columns)
        row = self._visible[offset]
        strip = row.strip
        if self.query_text:
            strip = highlight(strip, self.query_text, self._maker.style("match"))
        if self._selection:
            strip = self._selection.highlight(row, strip)
        bar = self._bar_segment(y)
        if self.selected == row.entry:
            strip = strip.adjust_cell_length(columns, self._maker.base)
            strip = Strip(Segment.apply_style(strip, post_style=self._maker.style("selected")), columns)
        strip = strip.adjust_cell_length(columns - (1 if bar else 0), self._maker.base)
        return Strip([*strip, bar], columns) if bar else strip

    @property
    def _first_line(self) -> int:
        """The line of the first row: short transcripts are at the bottom, next to the input."""
        return max(self._height - len(self._visible), 0) if self.viewport.following else 0

    @property
    def _height(self) -> int:
        return max(self.size.height - self._covered, 1)

    def cover(self, rows: int) -> None:
        """Leave the last rows empty, because a dialog covers them."""
        self._covered = max(rows, 0)
        self.update_rows(force=True)

    def _render_welcome(self, y: int, columns: int) -> Strip:
        first = (self.size.height - len(self.welcome)) // 2
        if self._visible or not 0 <= y - first < len(self.welcome):
            return Strip.blank(columns, self._maker.base)
        line = self._maker.make(self.welcome[y - first], columns)[0]
        longest = max(count_columns(line) for line in self.welcome)
        left = max((columns - longest) // 2, 0)
        return Strip([Segment(" " * left, self._maker.base), *line]).adjust_cell_length(columns, self._maker.base)

    def _bar_segment(self, y: int) -> Segment | None:
        """Return the part of the scroll bar on this line; there is none at the end of the transcript."""
        if self.viewport.following:
            return None
        room = max(self.size.height - THUMB_ROWS, 0)
        start = round(self.viewport.position * room)
        name = "thumb" if start <= y < start + THUMB_ROWS else "track"
        return Segment("▐" if name == "thumb" else " ", self._maker.style(name))

    def use_theme(self) -> None:
        super().use_theme()
        self.model.set_maker(self._maker)
        self.update_rows(force=True)

    def new_model(self) -> TranscriptModel:
        """Return the model of another session. Its changes are drawn while it is shown."""
        model = TranscriptModel(self._maker, lambda: self._on_model_change() if self.model is model else None)
        model.details = self.details
        return model

    def show_model(self, model: TranscriptModel) -> None:
        """Show another session, at its end."""
        self.model, self.viewport, self.selected, self.query_text = model, Viewport(model), None, ""
        self._selection = None
        self.use_theme()

    # -- changes -------------------------------------------------------------------------------------------------

    def _on_model_change(self) -> None:
        if self.selected is not None and self.selected >= len(self.model.entries):
            self.selected = None  # its turn was reverted
        if self._is_scheduled or not self.is_attached:
            return
        self._is_scheduled = True
        wait = self._last_frame + self._frame_seconds - time.monotonic()
        if wait <= 0:
            self.call_next(self._draw_frame)
        else:
            self.set_timer(wait, self._draw_frame)

    def _draw_frame(self) -> None:
        self._is_scheduled = False
        self._last_frame = time.monotonic()
        more = self.model.advance()
        self.update_rows()
        if more:
            self._on_model_change()

    def update_rows(self, *, force: bool = False) -> None:
        """Compute the visible rows and draw those that changed."""
        if not self.size.height:
            return
        before, first_before = self._visible, self._first_line
        self.viewport.set_columns(self._text_columns)
        self._visible = self.viewport.rows(self._height)
        old, new = _lines(before, first_before), _lines(self._visible, self._first_line)
        if force or not before:
            self.refresh()
            return
        changed = [y for y in range(self.size.height) if old.get(y) is not new.get(y)]
        if changed:
            self.refresh(*_regions(changed, self.size.width))

    @property
    def _text_columns(self) -> int:
        return max(self.size.width - 1, 8)  # the last column is for the scroll bar

    def on_resize(self, event: events.Resize) -> None:
        self._selection = None  # its rows are wrapped differently
        self.update_rows(force=True)

    def get_content_width(self, container: Size, viewport: Size) -> int:
        return container.width

    # -- moving --------------------------------------------------------------------------------------------------

    def scroll_rows(self, count: int) -> None:
        self.viewport.scroll(count)
        self.update_rows()
        self._repaint_bar()

    def page(self, direction: int) -> None:
        self.scroll_rows(direction * max(self.size.height - 2, 1))

    def to_start(self) -> None:
        self.viewport.scroll_to_start()
        self.update_rows(force=True)

    def to_end(self) -> None:
        self.selected = None
        self.viewport.follow()
        self.update_rows(force=True)

    def show_entry(self, index: int, row: int = 0) -> None:
        self.viewport.scroll_to(index, row)
        self.update_rows(force=True)

    def _repaint_bar(self) -> None:
        """Draw the scroll bar again; it is in the last column."""
        self.refresh(Region(self.size.width - 1, 0, 1, self.size.height))

    def select(self, direction: int) -> None:
        """Select the next (1) or previous (-1) entry that has rows."""
        count = len(self.model.entries)
        index = count if self.selected is None else self.selected
        index += direction
        while 0 <= index < count and not self.model.has_rows(index):
            index += direction
        if index >= count:
            self.to_end()
            return
        if index < 0:
            return
        self.selected = index
        if not self._is_fully_visible(index):
            self.viewport.scroll_to(index)
        self.update_rows(force=True)

    def _is_fully_visible(self, index: int) -> bool:
        first = next((row for row in self._visible if row.entry == index), None)
        return first is not None and first.row == first.place.section == 0

    def toggle_fold(self) -> None:
        """Fold or unfold the selected entry, or the last call."""
        index = self.selected
        if index is None:
            calls = (n for n in reversed(range(len(self.model.entries))) if self.model.entries[n].kind == "call")
            index = next(calls, None)
        if index is not None:
            self.model.toggle_fold(index)

    # -- selecting -----------------------------------------------------------------------------------------------

    def on_mouse_down(self, event: events.MouseDown) -> None:
        if self._selection:
            self._selection = None
            self.refresh()
        self._mouse_down = self._mark_at(event) if event.button == 1 else None
        if self._mouse_down:
            self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        end = self._mark_at(event) if self._mouse_down else None
        if self._mouse_down and end and (self._selection or end != self._mouse_down):
            self._selection = TextSelection(self._mouse_down, end)
            self.refresh()

    def on_mouse_up(self, event: events.MouseUp) -> None:
        self.release_mouse()
        self._mouse_down = None
        if self._selection and (text := self._selection.text(self.model)):
            self.post_message(self.Selected(text))

    def _mark_at(self, event: events.MouseEvent) -> Mark | None:
        """Return the position under the mouse, or the nearest one."""
        if not self._visible:
            return None
        offset = event.get_content_offset_capture(self)
        row = self._visible[min(max(offset.y - self._first_line, 0), len(self._visible) - 1)]
        return Mark(row.place, row.row, max(offset.x, 0))

    def on_click(self, event: events.Click) -> None:
        if self._selection:
            return  # the end of a selection
        offset = event.y - self._first_line
        if 0 <= offset < len(self._visible):
            self.post_message(self.Clicked(self._visible[offset].entry))


def _lines(rows: list[VisibleRow], first: int) -> dict[int, Strip]:
    return {first + number: row.strip for number, row in enumerate(rows)}


def _regions(lines: list[int], columns: int) -> Iterator[Region]:
    """Yield one region for each run of adjacent lines."""
    start = previous = lines[0]
    for line in (*lines[1:], -1):
        if line != previous + 1:
            yield Region(0, start, columns, previous - start + 1)
            start = line
        previous = line
