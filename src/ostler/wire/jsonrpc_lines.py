"""JSON-RPC on a stream of bytes: lines out of chunks, objects out of lines, lines out of objects."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

MAX_LINE_BYTES = 64 * 1024 * 1024


class LineTooLong(ValueError):
    """The other side sent more than a line may hold, so nothing after it can be made sense of."""


class InvalidJsonLine(ValueError):
    """A line that is no JSON."""


class LineSplitter:
    """Cuts chunks into lines. The work is linear, and no more than one line is held."""

    def __init__(self, max_bytes: int = MAX_LINE_BYTES) -> None:
        self._max_bytes = max_bytes
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The lines that are whole now, without their ends and without blank ones."""
        *whole, rest = data.split(b"\n")
        for part in whole:
            self._add(part)
            line = self.take_rest()
            if line:
                yield line
        self._add(rest)

    def take_rest(self) -> bytes:
        """What came since the last end of a line: at the end of the stream, a line that nobody ended."""
        line = b"".join(self._parts).strip()
        self._parts, self._size = [], 0
        return line

    def _add(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._max_bytes:
            raise LineTooLong(f"a line of more than {self._max_bytes} bytes")
        if part:
            self._parts.append(part)


def decode(line: bytes) -> Any:
    """What a line says. Half a surrogate pair, which JavaScript may send, becomes a replacement character."""
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _decode_surrogates(line)


def _decode_surrogates(line: bytes) -> Any:
    if b"\\u" not in line:
        raise InvalidJsonLine("no JSON")
    try:
        mended = json.dumps(json.loads(line), ensure_ascii=False).encode("utf-16-le", "surrogatepass")
        return msgspec.json.decode(mended.decode("utf-16-le", "replace"))
    except (ValueError, RecursionError):
        raise InvalidJsonLine("no JSON") from None


def encode(frame: Mapping[str, Any]) -> bytes:
    """A frame as a line, without its end; a name on disk that is no UTF-8 is sent as escapes."""
    try:
        return msgspec.json.encode(frame)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(frame), separators=(",", ":")).encode()
