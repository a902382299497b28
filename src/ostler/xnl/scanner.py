"""A stream of text to what may be shown and to the quoted and unquoted blocks in it."""

import re
from typing import Literal, TypeAlias

import msgspec

Kind = Literal["unquote", "quote"]

START, END = "!unquote_start", "!unquote_end"

_OPENER = re.compile("!(unquote|quote)_start")
_CLOSERS: dict[Kind, str] = {"unquote": END, "quote": "!quote_end"}


def _beginnings(*marks: str) -> frozenset[str]:
    return frozenset(mark[:length] for mark in marks for length in range(1, len(mark)))


# What may grow into a mark, by the kind of the open block.
_PARTIAL: dict[Kind | None, frozenset[str]] = {
    None: _beginnings(START, "!quote_start"),
    "unquote": _beginnings(_CLOSERS["unquote"]),
    "quote": _beginnings(_CLOSERS["quote"]),
}


class Visible(msgspec.Struct, frozen=True):
    """Text outside every block."""

    text: str


class Block(msgspec.Struct, frozen=True):
    """The text between a block's two marks."""

    kind: Kind
    text: str


class Unclosed(msgspec.Struct, frozen=True):
    """What the stream held of a block when it ended: nothing in it may run."""

    kind: Kind
    text: str


Piece: TypeAlias = Visible | Block | Unclosed


class Scanner:
    """Feed it chunks of any size. It keeps back only the start of a mark at a chunk's end, and an open block.

    A mark holds one `!`, at its start, so each character is looked at a fixed number of times.
    """

    def __init__(self) -> None:
        self._open: Kind | None = None
        self._body: list[str] = []
        self._held = ""

    def feed(self, chunk: str) -> list[Piece]:
        if not self._held and "!" not in chunk:
            if self._open is None:
                return [Visible(chunk)] if chunk else []
            self._body.append(chunk)
            return []
        return self._scan(self._held + chunk)

    def finish(self) -> list[Piece]:
        """The stream has ended: what was kept back, and a fresh start."""
        kind, rest = self._open, "".join(self._body) + self._held
        self._open, self._body, self._held = None, [], ""
        if kind is not None:
            return [Unclosed(kind, rest)]
        return [Visible(rest)] if rest else []

    def _scan(self, text: str) -> list[Piece]:
        pieces: list[Piece] = []
        position = 0
        while True:
            if self._open is None:
                opener = _OPENER.search(text, position)
                if opener is None:
                    break
                if opener.start() > position:
                    pieces.append(Visible(text[position : opener.start()]))
                self._open = "unquote" if opener[1] == "unquote" else "quote"
                position = opener.end()
            else:
                closer = _CLOSERS[self._open]
                end = text.find(closer, position)
                if end < 0:
                    break
                self._body.append(text[position:end])
                pieces.append(Block(self._open, "".join(self._body)))
                self._open, self._body = None, []
                position = end + len(closer)
        self._keep(text, position, pieces)
        return pieces

    def _keep(self, text: str, position: int, pieces: list[Piece]) -> None:
        """Hold back the start of a mark at the end; the text before it is settled."""
        settled = text.rfind("!", position)
        if settled < 0 or text[settled:] not in _PARTIAL[self._open]:
            settled = len(text)
        self._held = text[settled:]
        if self._open is not None:
            self._body.append(text[position:settled])
        elif settled > position:
            pieces.append(Visible(text[position:settled]))


def scan(text: str) -> list[Piece]:
    """The pieces of a text that is there as a whole."""
    scanner = Scanner()
    return scanner.feed(text) + scanner.finish()
