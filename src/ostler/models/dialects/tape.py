"""Text that arrives bit by bit, read by generators that wait where it ends so far."""

import re
from collections.abc import Generator, Sequence
from typing import TypeVar

T = TypeVar("T")
Reading = Generator[None, None, T]

_NOT_BLANK = re.compile(r"\S")


class Tape:
    """What has arrived and is not yet read is `window[at:]`; what was read since the mark can be had back.

    A reader yields to wait for more; once `ended` is set there is no more to wait for.
    """

    def __init__(self) -> None:
        self.window = ""
        self.at = 0
        self.ended = False
        self._mark = 0
        self._read: list[str] = []

    def feed(self, text: str) -> None:
        """Add what arrived."""
        self._read.append(self.window[self._mark : self.at])
        self.window = self.window[self.at :] + text
        self.at = self._mark = 0

    def mark(self) -> None:
        """What is read from here on can be had back."""
        self._read, self._mark = [], self.at

    def source(self) -> str:
        """All that was read since the mark."""
        return "".join(self._read) + self.window[self._mark : self.at]

    def take(self, end: int | None = None) -> str:
        """Read on as far as that place in the window, or all of it."""
        begin, self.at = self.at, len(self.window) if end is None else end
        return self.window[begin : self.at]

    def peek(self) -> Reading[str]:
        """The next character, or nothing at the end."""
        while self.at == len(self.window) and not self.ended:
            yield
        return self.window[self.at : self.at + 1]

    def skip_blanks(self) -> Reading[str]:
        """Read blanks; the character after them, or nothing at the end."""
        while True:
            found = _NOT_BLANK.search(self.window, self.at)
            if found is not None:
                self.at = found.start()
                return found[0]
            self.take()
            if self.ended:
                return ""
            yield

    def peek_literal(self, literals: Sequence[str]) -> Reading[str]:
        """Which of the literals stands here, or nothing; waits only while it may still be one."""
        while True:
            here = next((literal for literal in literals if self.window.startswith(literal, self.at)), "")
            if here or self.ended:
                return here
            rest = self.window[self.at : self.at + 64]
            if not any(literal.startswith(rest) for literal in literals):
                return ""
            yield

    def until(self, literals: Sequence[str]) -> Reading[str]:
        """Read the text before the first of the literals, or all that comes."""
        found = re.compile("|".join(map(re.escape, literals)))
        longest = max(map(len, literals))
        pieces: list[str] = []
        while True:
            here = found.search(self.window, self.at)
            if here is not None:
                pieces.append(self.take(here.start()))
                return "".join(pieces)
            pieces.append(self.take(None if self.ended else max(self.at, len(self.window) - longest + 1)))
            if self.ended:
                return "".join(pieces)
            yield
