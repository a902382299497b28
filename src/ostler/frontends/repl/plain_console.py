"""Plain lines in and out, for pipes, dumb terminals and `--plain`: nothing is ever moved or taken back."""

import asyncio
import codecs
import os
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TextIO

from ostler.frontends.repl.console import IDLE_MENU, AnswerMenu, ConsoleEvent, ExitRequested, LineEntered

if TYPE_CHECKING:
    from ostler.commands.completion import CompletionSource

CHUNK_SIZE = 65536
MAX_LINE_LENGTH = 1 << 24


class PlainConsole:
    """Reads a descriptor line by line in a thread of its own; a pipe only when a line is wanted."""

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
        begin = "\n" if self._prompted else ""
        self._prompted = False
        try:
            self._out.write(begin + "".join(f"{line}\n" for line in lines))
            self._out.flush()
        except (OSError, ValueError):  # whoever looked has gone
            self.inject(ExitRequested(1))

    def set_status(self, activity: str, summary: str) -> None:
        """There is no place here for what passes."""

    def set_menu(self, menu: AnswerMenu | None) -> None:
        self._menu = menu
        if menu and menu.answers:
            self.show([f"  {number}) {label} ({key})" for number, (key, label) in enumerate(menu.answers, 1)])
        self._print_prompt()

    def restore_draft(self, text: str) -> None:
        self.show([f"  not sent: {line}" for line in text.split("\n")])

    def set_completion(self, source: "CompletionSource") -> None:
        """Nothing is shown while a line is typed."""

    def alert(self, message: str) -> None:
        """What is asked is printed, and nothing else may be."""

    async def edit(self, path: str) -> bool:
        """Only where a person could see it."""
        from ostler.frontends.repl.external_editor import run_editor

        return self.echoes_input and await run_editor(path)

    async def start(self) -> None:
        """A prompt is printed when a line is wanted."""

    async def read(self) -> ConsoleEvent:
        begun = ""
        while True:
            if self._events.empty():
                self._print_prompt()
                self._read_next()
            typed = await self._events.get()
            if not isinstance(typed, LineEntered):
                return typed
            self._prompted = False
            if not typed.text.endswith("\\"):
                return self._resolve_number(LineEntered(begun + typed.text))
            begun += typed.text[:-1] + "\n"

    def inject(self, event: ConsoleEvent) -> None:
        self._events.put_nowait(event)

    async def aclose(self) -> None:
        """The descriptor is not ours to close."""

    def _print_prompt(self) -> None:
        """Where something is waited for, and nobody was told yet."""
        if self.echoes_input and self._menu and not self._prompted:
            self._out.write(self._menu.prompt)
            self._out.flush()
            self._prompted = True

    def _read_next(self) -> None:
        if self._is_reading:
            return
        self._is_reading = True
        loop = asyncio.get_running_loop()

        def got(typed: ConsoleEvent) -> None:
            self._is_reading = False
            self._events.put_nowait(typed)

        def deliver(line: str | None) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(got, ExitRequested() if line is None else LineEntered(line))

        threading.Thread(target=self._reader.read_line, args=(deliver,), daemon=True, name="lines").start()

    def _resolve_number(self, line: LineEntered) -> LineEntered:
        """A number stands for the answer at that place; what was asked is not asked again before somebody says so."""
        answers = self._menu.answers if self._menu else ()
        if self._menu != IDLE_MENU:
            self._menu = None
        said = line.text.strip()
        if answers and said.isdecimal() and 1 <= int(said[:9]) <= len(answers):
            return LineEntered(answers[int(said[:9]) - 1][0])
        return line


class _LineReader:
    """Whole lines of a descriptor; not through `sys.stdin`, whose lock would outlive the process's end."""

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
