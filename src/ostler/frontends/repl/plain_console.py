"""Console for pipes, dumb terminals and `--plain`: reads and appends plain lines only."""

import asyncio
import codecs
import os
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TextIO

from ostler.frontends.repl.console import IDLE_MENU, ConsoleEvent, ExitRequested, LineEntered
from ostler.interaction.answer_menu import AnswerMenu

if TYPE_CHECKING:
    from ostler.interaction.completion import CompletionSource

CHUNK_SIZE = 65536
MAX_LINE_LENGTH = 1 << 24


class PlainConsole:
    """Reads lines from a descriptor in a thread; a pipe only when a line is needed."""

    numbers_menu = True
    has_status = False
    page_size = (0, 0)

    def __init__(self, descriptor: int, out: TextIO, *, is_terminal: bool) -> None:
        self.reads_while_busy = self.echoes_input = is_terminal
        self._out = out
        self._menu: AnswerMenu | None = None
        self._events: asyncio.Queue[ConsoleEvent] = asyncio.Queue()
        self._reader = _LineReader(descriptor)
        self._is_reading = False
        self._prompted = False

    def show(self, lines: Sequence[str]) -> None:
        if not lines:
            return
        start = "\n" if self._prompted else ""
        self._prompted = False
        try:
            self._out.write(start + "".join(f"{line}\n" for line in lines))
            self._out.flush()
        except (OSError, ValueError):  # the reader closed the output
            self.inject(ExitRequested(1))

    def set_status(self, activity: str, summary: str) -> None:
        """Ignored: plain lines have no status."""

    def set_menu(self, menu: AnswerMenu | None) -> None:
        self._menu = menu
        if menu and menu.answers:
            self.show([f"  {number}) {label} ({key})" for number, (key, label) in enumerate(menu.answers, 1)])
        self._print_prompt()

    def restore_draft(self, text: str) -> None:
        self.show([f"  not sent: {line}" for line in text.split("\n")])

    def set_completion(self, source: "CompletionSource") -> None:
        """Ignored: plain lines have no completion."""

    def alert(self, message: str) -> None:
        """Ignored: the request itself is printed."""

    async def edit(self, path: str) -> bool:
        """Run the editor, but only in a terminal."""
        from ostler.interaction.external_editor import run_editor

        return self.echoes_input and await run_editor(path)

    async def start(self) -> None:
        """Do nothing: a prompt is printed when a line is needed."""

    async def read(self) -> ConsoleEvent:
        text = ""
        while True:
            if self._events.empty():
                self._print_prompt()
                self._read_next()
            event = await self._events.get()
            if not isinstance(event, LineEntered):
                return event
            self._prompted = False
            if not event.text.endswith("\\"):
                return self._resolve_number(LineEntered(text + event.text))
            text += event.text[:-1] + "\n"

    def inject(self, event: ConsoleEvent) -> None:
        self._events.put_nowait(event)

    async def aclose(self) -> None:
        """Do nothing: the caller owns the descriptor."""

    def _print_prompt(self) -> None:
        """Print the prompt of the menu, if it was not printed yet."""
        if self.echoes_input and self._menu and not self._prompted:
            self._out.write(self._menu.prompt)
            self._out.flush()
            self._prompted = True

    def _read_next(self) -> None:
        if self._is_reading:
            return
        self._is_reading = True
        loop = asyncio.get_running_loop()

        def add_event(event: ConsoleEvent) -> None:
            self._is_reading = False
            self._events.put_nowait(event)

        def deliver(line: str | None) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(add_event, ExitRequested() if line is None else LineEntered(line))

        threading.Thread(target=self._reader.read_line, args=(deliver,), daemon=True, name="lines").start()

    def _resolve_number(self, line: LineEntered) -> LineEntered:
        """Replace the number of an answer by its key, and clear a dialog's menu, so that its prompt is not repeated."""
        answers = self._menu.answers if self._menu else ()
        if self._menu != IDLE_MENU:
            self._menu = None
        text = line.text.strip()
        if answers and text.isdecimal() and 1 <= int(text[:9]) <= len(answers):
            return LineEntered(answers[int(text[:9]) - 1][0])
        return line


class _LineReader:
    """Reads lines from a descriptor. `sys.stdin` is not used, because its lock could block the exit."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._text = ""
        self._at_eof = False

    def read_line(self, deliver: Callable[[str | None], None]) -> None:
        while "\n" not in self._text and not self._at_eof and len(self._text) < MAX_LINE_LENGTH:
            try:
                data = os.read(self._descriptor, CHUNK_SIZE)
            except OSError:
                data = b""
            self._at_eof = not data
            self._text += self._decoder.decode(data, final=not data)
        line, newline, rest = self._text.partition("\n")
        self._text = rest
        deliver(line if newline or line else None)
