"""Text that arrives bit by bit, read by generators that wait where it ends so far."""

import re
from collections.abc import Generator, Sequence
from typing import TypeVar

T = TypeVar("T")
ParseGenerator = Generator[None, None, T]

_NOT_BLANK = re.compile(r"\S")


class IncrementalReader:
    """What has arrived and is not yet read is `window[at:]`; what was read since the mark can be had back.

    A reader yields to wait for more; once `ended` is set there is no more to wait for.
    """

    def __init__(self) -> None:
        self.buffer = ""
        self.position = 0
        self.ended = False
        self._mark = 0
        self._read_parts: list[str] = []

    def feed(self, text: str) -> None:
        """Add what arrived."""
        self._read_parts.append(self.buffer[self._mark : self.position])
        self.buffer = self.buffer[self.position :] + text
        self.position = self._mark = 0

    def mark(self) -> None:
        """What is read from here on can be had back."""
        self._read_parts, self._mark = [], self.position

    def text_since_mark(self) -> str:
        """All that was read since the mark."""
        return "".join(self._read_parts) + self.buffer[self._mark : self.position]

    def read(self, end: int | None = None) -> str:
        """Read on as far as that place in the window, or all of it."""
        begin, self.position = self.position, len(self.buffer) if end is None else end
        return self.buffer[begin : self.position]

    def peek(self) -> ParseGenerator[str]:
        """The next character, or nothing at the end."""
        while self.position == len(self.buffer) and not self.ended:
            yield
        return self.buffer[self.position : self.position + 1]

    def skip_blanks(self) -> ParseGenerator[str]:
        """Read blanks; the character after them, or nothing at the end."""
        while True:
            found = _NOT_BLANK.search(self.buffer, self.position)
            if found is not None:
                self.position = found.start()
                return found[0]
            self.read()
            if self.ended:
                return ""
            yield

    def peek_literal(self, literals: Sequence[str]) -> ParseGenerator[str]:
        """Which of the literals stands here, or nothing; waits only while it may still be one."""
        while True:
            here = next((literal for literal in literals if self.buffer.startswith(literal, self.position)), "")
            if here or self.ended:
                return here
            rest = self.buffer[self.position : self.position + 64]
            if not any(literal.startswith(rest) for literal in literals):
                return ""
            yield

    def read_until(self, literals: Sequence[str]) -> ParseGenerator[str]:
        """Read the text before the first of the literals, or all that comes."""
        found = re.compile("|".join(map(re.escape, literals)))
        longest = max(map(len, literals))
        pieces: list[str] = []
        while True:
            here = found.search(self.buffer, self.position)
            if here is not None:
                pieces.append(self.read(here.start()))
                return "".join(pieces)
            pieces.append(self.read(None if self.ended else max(self.position, len(self.buffer) - longest + 1)))
            if self.ended:
                return "".join(pieces)
            yield
