"""Splits a text stream into visible text and quoted or unquoted blocks."""

import re
from typing import Literal, Protocol, TypeAlias

import msgspec

BlockKind = Literal["unquote", "quote"]

UNQUOTE_START, UNQUOTE_END = "!unquote_start", "!unquote_end"

_OPENER = re.compile("!(unquote|quote)_start")
_CLOSERS: dict[BlockKind, str] = {"unquote": UNQUOTE_END, "quote": "!quote_end"}


def _prefixes(*markers: str) -> frozenset[str]:
    return frozenset(marker[:length] for marker in markers for length in range(1, len(marker)))


# Partial markers, by the kind of the open block.
_PARTIAL: dict[BlockKind | None, frozenset[str]] = {
    None: _prefixes(UNQUOTE_START, "!quote_start"),
    "unquote": _prefixes(_CLOSERS["unquote"]),
    "quote": _prefixes(_CLOSERS["quote"]),
}


class VisibleText(msgspec.Struct, frozen=True):
    """Text outside every block."""

    text: str


class MarkedBlock(msgspec.Struct, frozen=True):
    """The text between the two markers of a block."""

    kind: BlockKind
    text: str


class UnclosedBlock(msgspec.Struct, frozen=True):
    """The text of a block that was not closed at the end of the stream. Nothing in it may run."""

    kind: BlockKind
    text: str


ScannedPart: TypeAlias = VisibleText | MarkedBlock | UnclosedBlock


class TextContext(Protocol):
    """The context of the visible text: where it is quoted, markers are text."""

    @property
    def is_quoted(self) -> bool: ...

    def feed(self, text: str) -> None: ...


class XnlScanner:
    """Scans chunks of any size. Holds back only a partial marker at the end of a chunk, and an open block.

    A marker contains one `!`, at its start, so each character is scanned a fixed number of times.
    """

    def __init__(self, context: TextContext | None = None) -> None:
        """Without a context, markers are found everywhere."""
        self._context = context
        self._open_kind: BlockKind | None = None
        self._body: list[str] = []
        self._pending = ""

    def feed(self, chunk: str) -> list[ScannedPart]:
        if not self._pending and "!" not in chunk:
            if self._open_kind is None:
                return self._visible(chunk)
            self._body.append(chunk)
            return []
        return self._scan(self._pending + chunk)

    def finish(self) -> list[ScannedPart]:
        """Return what was held back at the end of the stream, and reset the scanner."""
        kind, rest = self._open_kind, "".join(self._body) + self._pending
        self._open_kind, self._body, self._pending = None, [], ""
        if kind is not None:
            return [UnclosedBlock(kind, rest)]
        return self._visible(rest)

    def _scan(self, text: str) -> list[ScannedPart]:
        parts: list[ScannedPart] = []
        position = 0
        while True:
            if self._open_kind is None:
                opener = _OPENER.search(text, position)
                if opener is None:
                    break
                parts += self._visible(text[position : opener.start()])
                if self._context is not None and self._context.is_quoted:
                    parts += self._visible(opener[0])
                    position = opener.end()
                    continue
                self._open_kind = "unquote" if opener[1] == "unquote" else "quote"
                position = opener.end()
            else:
                closer = _CLOSERS[self._open_kind]
                end = text.find(closer, position)
                if end < 0:
                    break
                self._body.append(text[position:end])
                parts.append(MarkedBlock(self._open_kind, "".join(self._body)))
                self._open_kind, self._body = None, []
                position = end + len(closer)
        self._hold_back(text, position, parts)
        return parts

    def _hold_back(self, text: str, position: int, parts: list[ScannedPart]) -> None:
        """Hold back a partial marker at the end, and add the text before it."""
        end = text.rfind("!", position)
        if end < 0 or text[end:] not in _PARTIAL[self._open_kind]:
            end = len(text)
        self._pending = text[end:]
        if self._open_kind is not None:
            self._body.append(text[position:end])
        else:
            parts += self._visible(text[position:end])

    def _visible(self, text: str) -> list[ScannedPart]:
        if self._context is not None:
            self._context.feed(text)
        return [VisibleText(text)] if text else []


def scan(text: str) -> list[ScannedPart]:
    """Scan a complete text."""
    scanner = XnlScanner()
    return scanner.feed(text) + scanner.finish()
