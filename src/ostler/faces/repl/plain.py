"""Plain lines in and out, for pipes, dumb terminals and `--plain`: nothing is ever moved or taken back."""

import asyncio
import codecs
import os
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TextIO

from ostler.faces.repl.console import IDLE, Leave, Line, Menu, Typed

if TYPE_CHECKING:
    from ostler.commands.complete import Completing

CHUNK = 65536
LONGEST_LINE = 1 << 24


class PlainConsole:
    """Reads a descriptor line by line in a thread of its own; a pipe only when a line is wanted."""

    numbers = True
    has_status = False
    page = (0, 0)

    def __init__(self, descriptor: int, out: TextIO, *, terminal: bool) -> None:
        self.live = self.echoes = terminal
        self._out = out
        self._menu: Menu | None = None
        self._typed: asyncio.Queue[Typed] = asyncio.Queue()
        self._lines = _Lines(descriptor)
        self._reading = False
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
            self.push(Leave(1))

    def status(self, passing: str, standing: str) -> None:
        """There is no place here for what passes."""

    def expect(self, menu: Menu | None) -> None:
        self._menu = menu
        if menu and menu.answers:
            self.show([f"  {number}) {label} ({key})" for number, (key, label) in enumerate(menu.answers, 1)])
        self._prompt()

    def draft(self, text: str) -> None:
        self.show([f"  not sent: {line}" for line in text.split("\n")])

    def completes(self, completing: "Completing") -> None:
        """Nothing is shown while a line is typed."""

    def ring(self, told: str) -> None:
        """What is asked is printed, and nothing else may be."""

    async def edit(self, path: str) -> bool:
        """Only where a person could see it."""
        from ostler.faces.repl.programs import run_editor

        return self.echoes and await run_editor(path)

    async def begin(self) -> None:
        """A prompt is printed when a line is wanted."""

    async def read(self) -> Typed:
        begun = ""
        while True:
            if self._typed.empty():
                self._prompt()
                self._want()
            typed = await self._typed.get()
            if not isinstance(typed, Line):
                return typed
            self._prompted = False
            if not typed.text.endswith("\\"):
                return self._answer(Line(begun + typed.text))
            begun += typed.text[:-1] + "\n"

    def push(self, typed: Typed) -> None:
        self._typed.put_nowait(typed)

    async def aclose(self) -> None:
        """The descriptor is not ours to close."""

    def _prompt(self) -> None:
        """Where something is waited for, and nobody was told yet."""
        if self.echoes and self._menu and not self._prompted:
            self._out.write(self._menu.prompt)
            self._out.flush()
            self._prompted = True

    def _want(self) -> None:
        if self._reading:
            return
        self._reading = True
        loop = asyncio.get_running_loop()

        def got(typed: Typed) -> None:
            self._reading = False
            self._typed.put_nowait(typed)

        def deliver(line: str | None) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(got, Leave() if line is None else Line(line))

        threading.Thread(target=self._lines.next, args=(deliver,), daemon=True, name="lines").start()

    def _answer(self, line: Line) -> Line:
        """A number stands for the answer at that place; what was asked is not asked again before somebody says so."""
        answers = self._menu.answers if self._menu else ()
        if self._menu != IDLE:
            self._menu = None
        said = line.text.strip()
        if answers and said.isdecimal() and 1 <= int(said[:9]) <= len(answers):
            return Line(answers[int(said[:9]) - 1][0])
        return line


class _Lines:
    """Whole lines of a descriptor; not through `sys.stdin`, whose lock would outlive the process's end."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._text = ""
        self._ended = False

    def next(self, deliver: Callable[[str | None], None]) -> None:
        while "\n" not in self._text and not self._ended and len(self._text) < LONGEST_LINE:
            try:
                data = os.read(self._descriptor, CHUNK)
            except OSError:
                data = b""
            self._ended = not data
            self._text += self._decoder.decode(data, final=not data)
        line, newline, rest = self._text.partition("\n")
        self._text = rest
        deliver(line if newline or line else None)
