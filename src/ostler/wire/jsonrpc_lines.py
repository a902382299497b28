"""Splits a byte stream into JSON-RPC lines and encodes and decodes them."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

MAX_LINE_BYTES = 64 * 1024 * 1024


class LineTooLong(ValueError):
    """A line exceeded the maximum size; the rest of the stream cannot be parsed."""


class InvalidJsonLine(ValueError):
    """A line that is not valid JSON."""


class LineSplitter:
    """Splits chunks into lines in linear time, buffering one line at most."""

    def __init__(self, max_bytes: int = MAX_LINE_BYTES) -> None:
        self._max_bytes = max_bytes
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the lines completed by a chunk, stripped and without empty ones."""
        *complete, rest = data.split(b"\n")
        for part in complete:
            self._add(part)
            line = self.take_rest()
            if line:
                yield line
        self._add(rest)

    def take_rest(self) -> bytes:
        """Return and clear what was received since the last newline."""
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
    """Decode a line. Unpaired surrogates, which JavaScript may send, become replacement characters.

    Raises `InvalidJsonLine` if it is not JSON.
    """
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _decode_surrogates(line)


def _decode_surrogates(line: bytes) -> Any:
    if b"\\u" not in line:
        raise InvalidJsonLine("not valid JSON")
    try:
        utf16 = json.dumps(json.loads(line), ensure_ascii=False).encode("utf-16-le", "surrogatepass")
        return msgspec.json.decode(utf16.decode("utf-16-le", "replace"))
    except (ValueError, RecursionError):
        raise InvalidJsonLine("not valid JSON") from None


def encode(frame: Mapping[str, Any]) -> bytes:
    """Encode a frame as a line without a newline; text that is not valid UTF-8 is sent as escapes."""
    try:
        return msgspec.json.encode(frame)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(frame), separators=(",", ":")).encode()
