"""Incremental text reader for generator-based parsers."""

import re
from collections.abc import Generator, Sequence
from typing import TypeVar

T = TypeVar("T")
ParseGenerator = Generator[None, None, T]

_NOT_BLANK = re.compile(r"\S")


class IncrementalReader:
    """Buffers streamed text. The unread part is `buffer[position:]`; text read since `mark` can be recovered.

    A parser yields to wait for more text, unless `ended` is set.
    """

    def __init__(self) -> None:
        self.buffer = ""
        self.position = 0
        self.ended = False
        self._mark = 0
        self._read_parts: list[str] = []

    def feed(self, text: str) -> None:
        """Add text to the buffer."""
        self._read_parts.append(self.buffer[self._mark : self.position])
        self.buffer = self.buffer[self.position :] + text
        self.position = self._mark = 0

    def mark(self) -> None:
        """Set the mark to the current position."""
        self._read_parts, self._mark = [], self.position

    def text_since_mark(self) -> str:
        """Return all text read since the mark."""
        return "".join(self._read_parts) + self.buffer[self._mark : self.position]

    def read(self, end: int | None = None) -> str:
        """Read up to index `end` of the buffer, or all of it."""
        start, self.position = self.position, len(self.buffer) if end is None else end
        return self.buffer[start : self.position]

    def peek(self) -> ParseGenerator[str]:
        """Return the next character, or an empty string at the end."""
        while self.position == len(self.buffer) and not self.ended:
            yield
        return self.buffer[self.position : self.position + 1]

    def skip_blanks(self) -> ParseGenerator[str]:
        """Skip blanks. Return the character after them, or an empty string at the end."""
        while True:
            match = _NOT_BLANK.search(self.buffer, self.position)
            if match is not None:
                self.position = match.start()
                return match[0]
            self.read()
            if self.ended:
                return ""
            yield

    def peek_literal(self, literals: Sequence[str]) -> ParseGenerator[str]:
        """Return the literal at the current position, or an empty string. Consumes nothing."""
        while True:
            literal_here = next((literal for literal in literals if self.buffer.startswith(literal, self.position)), "")
            if literal_here or self.ended:
                return literal_here
            rest = self.buffer[self.position : self.position + 64]
            if not any(literal.startswith(rest) for literal in literals):
                return ""
            yield

    def read_until(self, literals: Sequence[str]) -> ParseGenerator[str]:
        """Read the text before the first of the literals, or all text."""
        pattern = re.compile("|".join(map(re.escape, literals)))
        max_length = max(map(len, literals))
        parts: list[str] = []
        while True:
            match = pattern.search(self.buffer, self.position)
            if match is not None:
                parts.append(self.read(match.start()))
                return "".join(parts)
            parts.append(self.read(None if self.ended else max(self.position, len(self.buffer) - max_length + 1)))
            if self.ended:
                return "".join(parts)
            yield
