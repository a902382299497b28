"""Splits a byte stream into JSON-RPC lines and encodes and decodes them."""

import json
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

MAX_LINE_BYTES = 64 * 1024 * 1024
HEAD_BYTES = 64 * 1024
TAIL_BYTES = 1024 * 1024
DROPPED_MARK = rb"\n[...]\n"
# A prefix that ends between two characters: no incomplete escape, no incomplete UTF-8 sequence.
_WHOLE_CHARACTERS = re.compile(
    rb"(?:[\x00-\x5b\x5d-\x7f]|[\xc0-\xff][\x80-\xbf]+(?=[^\x80-\xbf])|\\(?:u[0-9a-fA-F]{4}|[^u]))*"
)
# After six bytes without these, an escape sequence that began before is complete; a UTF-8 sequence may not be.
_BOUNDARY = re.compile(rb'[^"\\]{6}[\x80-\xbf]*')


class LineTooLong(ValueError):
    """A line exceeded the maximum size; the rest of the stream cannot be parsed."""


class InvalidJsonLine(ValueError):
    """A line that is not valid JSON."""


class LineSplitter:
    """Splits chunks into lines in linear time, buffering one line at most.

    `limit_for` gets the beginning of a long line and returns the size from which it is shortened, or None. Only the
    beginning and the end of a shortened line are stored.
    """

    def __init__(
        self, max_bytes: int = MAX_LINE_BYTES, limit_for: Callable[[bytes], int | None] = lambda head: None
    ) -> None:
        self._max_bytes = max_bytes
        self._limit_for = limit_for
        self.was_shortened = False  # the last line
        self._reset()

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
        received = b"".join(self._parts)
        self.was_shortened = self._head is not None
        line = received.strip() if self._head is None else join_shortened(self._head, received)
        self._reset()
        return line

    def _reset(self) -> None:
        self._parts: deque[bytes] = deque()
        self._size = 0
        self._head: bytes | None = None
        self._limit: int | None = None

    def _add(self, part: bytes) -> None:
        if not part:
            return
        before = self._size
        self._size += len(part)
        self._parts.append(part)
        if before <= HEAD_BYTES < self._size:
            self._limit = self._limit_for(b"".join(self._parts)[:HEAD_BYTES])
        if self._limit is None and self._size > self._max_bytes:
            raise LineTooLong(f"a line of more than {self._max_bytes} bytes")
        if self._limit is not None and self._size > self._limit:
            self._drop_middle()

    def _drop_middle(self) -> None:
        if self._head is None:
            received = b"".join(self._parts)
            self._head, self._parts = received[:HEAD_BYTES], deque([received[HEAD_BYTES:]])
            self._stored = len(received) - HEAD_BYTES
        else:
            self._stored += len(self._parts[-1])
        while self._stored - len(self._parts[0]) >= TAIL_BYTES:
            self._stored -= len(self._parts.popleft())


def join_shortened(head: bytes, tail: bytes) -> bytes:
    """Join the beginning and the end of a line whose middle, inside of a string, was dropped.

    Both are cut between two characters of the string. The result is not valid JSON if the middle was not in one string.
    """
    tail = tail[-TAIL_BYTES:]
    kept = _WHOLE_CHARACTERS.match(head)
    boundary = _BOUNDARY.search(tail)
    head = kept[0] if kept else head
    return head.lstrip() + DROPPED_MARK + tail[boundary.end() if boundary else len(tail) :].rstrip()


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
