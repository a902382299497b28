"""A stream of text to what may be shown and to the quoted and unquoted blocks in it."""

import re
from typing import Literal, TypeAlias

import msgspec

BlockKind = Literal["unquote", "quote"]

UNQUOTE_START, UNQUOTE_END = "!unquote_start", "!unquote_end"

_OPENER = re.compile("!(unquote|quote)_start")
_CLOSERS: dict[BlockKind, str] = {"unquote": UNQUOTE_END, "quote": "!quote_end"}


def _prefixes(*marks: str) -> frozenset[str]:
    return frozenset(mark[:length] for mark in marks for length in range(1, len(mark)))


# What may grow into a mark, by the kind of the open block.
_PARTIAL: dict[BlockKind | None, frozenset[str]] = {
    None: _prefixes(UNQUOTE_START, "!quote_start"),
    "unquote": _prefixes(_CLOSERS["unquote"]),
    "quote": _prefixes(_CLOSERS["quote"]),
}


class VisibleText(msgspec.Struct, frozen=True):
    """Text outside every block."""

    text: str


class MarkedBlock(msgspec.Struct, frozen=True):
    """The text between a block's two marks."""

    kind: BlockKind
    text: str


class UnclosedBlock(msgspec.Struct, frozen=True):
    """What the stream held of a block when it ended: nothing in it may run."""

    kind: BlockKind
    text: str


ScannedPart: TypeAlias = VisibleText | MarkedBlock | UnclosedBlock


class XnlScanner:
    """Feed it chunks of any size. It keeps back only the start of a mark at a chunk's end, and an open block.

    A mark holds one `!`, at its start, so each character is looked at a fixed number of times.
    """

    def __init__(self) -> None:
        self._open_kind: BlockKind | None = None
        self._body: list[str] = []
        self._pending = ""

    def feed(self, chunk: str) -> list[ScannedPart]:
        if not self._pending and "!" not in chunk:
            if self._open_kind is None:
                return [VisibleText(chunk)] if chunk else []
            self._body.append(chunk)
            return []
        return self._scan(self._pending + chunk)

    def finish(self) -> list[ScannedPart]:
        """The stream has ended: what was kept back, and a fresh start."""
        kind, rest = self._open_kind, "".join(self._body) + self._pending
        self._open_kind, self._body, self._pending = None, [], ""
        if kind is not None:
            return [UnclosedBlock(kind, rest)]
        return [VisibleText(rest)] if rest else []

    def _scan(self, text: str) -> list[ScannedPart]:
        pieces: list[ScannedPart] = []
        position = 0
        while True:
            if self._open_kind is None:
                opener = _OPENER.search(text, position)
                if opener is None:
                    break
                if opener.start() > position:
                    pieces.append(VisibleText(text[position : opener.start()]))
                self._open_kind = "unquote" if opener[1] == "unquote" else "quote"
                position = opener.end()
            else:
                closer = _CLOSERS[self._open_kind]
                end = text.find(closer, position)
                if end < 0:
                    break
                self._body.append(text[position:end])
                pieces.append(MarkedBlock(self._open_kind, "".join(self._body)))
                self._open_kind, self._body = None, []
                position = end + len(closer)
        self._hold_back(text, position, pieces)
        return pieces

    def _hold_back(self, text: str, position: int, parts: list[ScannedPart]) -> None:
        """Hold back the start of a mark at the end; the text before it is settled."""
        settled = text.rfind("!", position)
        if settled < 0 or text[settled:] not in _PARTIAL[self._open_kind]:
            settled = len(text)
        self._pending = text[settled:]
        if self._open_kind is not None:
            self._body.append(text[position:settled])
        elif settled > position:
            parts.append(VisibleText(text[position:settled]))


def scan(text: str) -> list[ScannedPart]:
    """The pieces of a text that is there as a whole."""
    scanner = XnlScanner()
    return scanner.feed(text) + scanner.finish()
