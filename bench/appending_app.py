"""Appends lines to a transcript in a terminal and reports the CPU time of each.

    python appending_app.py client|bare MESSAGES FILE

`client` is the transcript of the full-screen client. `bare` is a Textual widget that draws plain lines, without
wrapping, styles or records.
"""

import sys
import time
from pathlib import Path
from typing import Any

from rich.segment import Segment
from textual.app import App, ComposeResult
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from ostler.core.events import Envelope, MessageDone
from ostler.core.message import Message
from ostler.core.prompt import TextContent
from ostler.frontends.tui.painted_app import PaintedApp
from ostler.frontends.tui.transcript.view import TranscriptView
from ostler.journal.records import ListRecords

INTERVAL = 0.04  # longer than a frame, so that each line is drawn by itself
WARM_UP, APPENDS = 20, 100


def message(number: int) -> Envelope:
    text = f"Line {number} of a conversation, with some `code` and **bold** words, as most answers have."
    return Envelope(number, 0.0, MessageDone(Message(f"m{number}", (TextContent(text),))))


class Meter:
    """Appends at an interval, and writes the milliseconds of CPU time for each line to a file."""

    def __init__(self, app: "App[Any]", target: Path) -> None:
        self._app = app
        self._target = target
        self._count = 0
        self._started = 0.0

    def count(self) -> int:
        """Return the number of the next line."""
        self._count += 1
        if self._count == WARM_UP:
            self._started = time.process_time()
        if self._count == WARM_UP + APPENDS:
            self._target.write_text(str((time.process_time() - self._started) / APPENDS * 1000))
            self._app.exit()
        return self._count


class Client(PaintedApp):
    """The transcript of the client."""

    def __init__(self, messages: int, target: Path) -> None:
        super().__init__()
        self._view = TranscriptView()
        self._messages = messages
        self._meter = Meter(self, target)

    def compose(self) -> ComposeResult:
        yield self._view

    def on_mount(self) -> None:
        self._view.model.load(ListRecords([message(number) for number in range(self._messages)]), self._messages)
        self.set_interval(INTERVAL, self._append)

    def _append(self) -> None:
        self._view.model.apply(message(self._messages + self._meter.count()))


class Lines(ScrollView):
    """Draws plain lines."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__()
        self._lines = lines

    def on_mount(self) -> None:
        self.add("start")

    def add(self, line: str) -> None:
        self._lines.append(line)
        self.virtual_size = Size(80, len(self._lines))
        self.scroll_end(animate=False)

    def render_line(self, y: int) -> Strip:
        row = y + self.scroll_offset.y
        text = self._lines[row] if row < len(self._lines) else ""
        return Strip([Segment(text)]).adjust_cell_length(self.size.width)


class Bare(App[None]):
    """A widget that draws lines, and nothing else."""

    def __init__(self, messages: int, target: Path) -> None:
        super().__init__()
        self._lines = Lines([f"Line {number} of a conversation" for number in range(messages)])
        self._meter = Meter(self, target)

    def compose(self) -> ComposeResult:
        yield self._lines

    def on_mount(self) -> None:
        self.set_interval(INTERVAL, self._append)

    def _append(self) -> None:
        self._lines.add(f"Line {self._meter.count()} of a conversation, with some code and bold words, as most have.")


if __name__ == "__main__":
    kind, size, file = sys.argv[1:]
    app: App[Any] = (Client if kind == "client" else Bare)(int(size), Path(file))
    app.run()
