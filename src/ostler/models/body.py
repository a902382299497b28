"""Where an HTTP/1.1 body ends: the three framings, each fed what one socket read brought."""

from collections.abc import Mapping
from typing import Protocol

from ostler.text.regex import regex

_MANY = 4_096
_MAX_SIZE_LINE = 256
_MAX_TRAILERS = 16_384
_SIZE_LINE = regex(rb"([0-9a-fA-F]{1,15})[ \t]*(?:;[^\r\n]*)?")


class BadFraming(Exception):
    """The bytes are no body in the framing their head announced."""


class Body(Protocol):
    """A body being received. `rest` is what came after its end; `by_close` tells that only closing ends it."""

    done: bool
    rest: bytes
    by_close: bool

    def feed(self, data: bytes) -> bytes:
        """The content within these bytes, all of it at once."""


def body_of(status: int, headers: Mapping[str, str]) -> Body:
    """The framing that a response's head announces."""
    if status in (204, 304):
        return Counted(0)
    if "transfer-encoding" in headers:
        return Chunked()
    if "content-length" in headers:
        return Counted(int(headers["content-length"]))
    return UntilClose()


class Counted:
    """A body of a length told before."""

    by_close = False

    def __init__(self, length: int) -> None:
        self._left = length
        self.done = length == 0
        self.rest = b""

    def feed(self, data: bytes) -> bytes:
        if len(data) > self._left:
            data, self.rest = data[: self._left], data[self._left :]
        self._left -= len(data)
        self.done = self._left == 0
        return data


class UntilClose:
    """A body that ends with its connection."""

    by_close = True

    def __init__(self) -> None:
        self.done = False
        self.rest = b""

    def feed(self, data: bytes) -> bytes:
        return data


class Chunked:
    """A chunked body, linear in its bytes and quick over many small chunks, as a stream of tokens has them.

    h11 makes an event of each chunk, which would cost more than all the rest of a long reply.
    """

    by_close = False

    def __init__(self) -> None:
        self.done = False
        self.rest = b""
        self._left = 0  # of the chunk under way, with the two bytes that end it
        self._held = b""  # an unfinished size line or trailer
        self._trailing = False
        self._sizes: dict[bytes, int] = {}

    def feed(self, data: bytes) -> bytes:
        if self._held:
            data, self._held = self._held + data, b""
        content: list[bytes] = []
        at = self._take_many(data, content) if len(data) > _MANY and not self._trailing else 0
        while at < len(data) and not self._trailing:
            if self._left:
                at = self._take(data, at, content)
                continue
            end = data.find(b"\r\n", at)
            if end < 0:
                self._hold(data[at:], _MAX_SIZE_LINE)
                break
            line = data[at:end]
            size = self._sizes.get(line)
            if size is None:
                size = self._read_size(line)
            at = end + 2
            if not size:
                self._trailing = True
            elif data.startswith(b"\r\n", at + size):
                content.append(data[at : at + size])
                at += size + 2
            else:
                self._left = size + 2
        if self._trailing:
            self._trailer(data[at:])
        return content[0] if len(content) == 1 else b"".join(content)

    def _take_many(self, data: bytes, content: list[bytes]) -> int:
        """Take a run of whole chunks in a few sweeps, and how far it went; anything else is left to be looked at."""
        at = self._take(data, 0, content) if self._left else 0
        lines = data[at:].split(b"\r\n")
        chunks = lines[1:-1:2]
        sizes = map(self._sizes.get, lines[: 2 * len(chunks) : 2])
        if not chunks or list(sizes) != list(map(len, chunks)):
            return at
        content += chunks
        return len(data) - len(b"\r\n".join(lines[2 * len(chunks) :]))

    def _take(self, data: bytes, at: int, content: list[bytes]) -> int:
        """Take what there is of a chunk that did not come whole, and check the line break behind it."""
        end = at + self._left
        got = data[at:end]
        break_at = max(0, self._left - 2)
        expected = b"\r\n"[2 - min(2, self._left) :]
        if not expected.startswith(got[break_at:]):
            raise BadFraming("a chunk is longer than it says")
        content.append(got[:break_at])
        self._left -= len(got)
        return at + len(got)

    def _read_size(self, line: bytes) -> int:
        match = _SIZE_LINE.fullmatch(line)
        if match is None:
            raise BadFraming("a chunk begins with no size")
        size = int(match[1], 16)
        if size and len(self._sizes) < 1024:
            self._sizes[line] = size
        return size

    def _hold(self, data: bytes, limit: int) -> None:
        if len(data) > limit:
            raise BadFraming("a line between chunks is too long")
        self._held = data

    def _trailer(self, data: bytes) -> None:
        if data.startswith(b"\r\n"):
            self.done, self.rest = True, data[2:]
            return
        end = data.find(b"\r\n\r\n")
        if end < 0:
            self._hold(data, _MAX_TRAILERS)
        else:
            self.done, self.rest = True, data[end + 4 :]
