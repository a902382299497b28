"""HTTP/1.1 body framing: content-length, chunked, until close."""

from collections.abc import Mapping
from typing import Protocol

from ostler.text.lazy_regex import lazy_regex

_FAST_PATH_BYTES = 4_096
_MAX_SIZE_LINE = 256
_MAX_TRAILERS = 16_384
_SIZE_LINE = lazy_regex(rb"([0-9a-fA-F]{1,15})[ \t]*(?:;[^\r\n]*)?")


class FramingError(Exception):
    """The bytes do not follow the framing that the response head announced."""


class HttpBody(Protocol):
    """A body being received. `trailing_data` arrived after its end; with `ends_on_close` only closing ends it."""

    done: bool
    trailing_data: bytes
    ends_on_close: bool

    def feed(self, data: bytes) -> bytes:
        """Return the content in these bytes. Raises `FramingError`."""


def make_body(status: int, headers: Mapping[str, str]) -> HttpBody:
    """Return a body for the framing that the response head announces."""
    if status in (204, 304):
        return FixedLengthBody(0)
    if "transfer-encoding" in headers:
        return ChunkedBody()
    if "content-length" in headers:
        return FixedLengthBody(int(headers["content-length"]))
    return CloseDelimitedBody()


class FixedLengthBody:
    """A body with a content-length."""

    ends_on_close = False

    def __init__(self, length: int) -> None:
        self._remaining = length
        self.done = length == 0
        self.trailing_data = b""

    def feed(self, data: bytes) -> bytes:
        if len(data) > self._remaining:
            data, self.trailing_data = data[: self._remaining], data[self._remaining :]
        self._remaining -= len(data)
        self.done = self._remaining == 0
        return data


class CloseDelimitedBody:
    """A body that ends when the connection is closed."""

    ends_on_close = True

    def __init__(self) -> None:
        self.done = False
        self.trailing_data = b""

    def feed(self, data: bytes) -> bytes:
        return data


class ChunkedBody:
    """A chunked body, parsed in linear time and fast for the many small chunks of a token stream.

    h11 creates an event for each chunk, which would cost more than the rest of the work on a long reply.
    """

    ends_on_close = False

    def __init__(self) -> None:
        self.done = False
        self.trailing_data = b""
        self._remaining = 0  # bytes of the current chunk, including its CRLF
        self._pending = b""  # an unfinished size line or trailer
        self._in_trailer = False
        self._sizes: dict[bytes, int] = {}

    def feed(self, data: bytes) -> bytes:
        if self._pending:
            data, self._pending = self._pending + data, b""
        content: list[bytes] = []
        offset = self._take_full_chunks(data, content) if len(data) > _FAST_PATH_BYTES and not self._in_trailer else 0
        while offset < len(data) and not self._in_trailer:
            if self._remaining:
                offset = self._take_partial_chunk(data, offset, content)
                continue
            end = data.find(b"\r\n", offset)
            if end < 0:
                self._save_pending(data[offset:], _MAX_SIZE_LINE)
                break
            line = data[offset:end]
            size = self._sizes.get(line)
            if size is None:
                size = self._read_size(line)
            offset = end + 2
            if not size:
                self._in_trailer = True
            elif data.startswith(b"\r\n", offset + size):
                content.append(data[offset : offset + size])
                offset += size + 2
            else:
                self._remaining = size + 2
        if self._in_trailer:
            self._read_trailer(data[offset:])
        return content[0] if len(content) == 1 else b"".join(content)

    def _take_full_chunks(self, data: bytes, content: list[bytes]) -> int:
        """Add a run of complete chunks to `content` in a few passes. Return the offset after it."""
        offset = self._take_partial_chunk(data, 0, content) if self._remaining else 0
        lines = data[offset:].split(b"\r\n")
        chunks = lines[1:-1:2]
        sizes = map(self._sizes.get, lines[: 2 * len(chunks) : 2])
        if not chunks or list(sizes) != list(map(len, chunks)):
            return offset
        content += chunks
        return len(data) - len(b"\r\n".join(lines[2 * len(chunks) :]))

    def _take_partial_chunk(self, data: bytes, start: int, content: list[bytes]) -> int:
        """Add the available part of a chunk to `content` and check its CRLF. Return the offset after it."""
        end = start + self._remaining
        available = data[start:end]
        break_at = max(0, self._remaining - 2)
        expected = b"\r\n"[2 - min(2, self._remaining) :]
        if not expected.startswith(available[break_at:]):
            raise FramingError("a chunk is longer than its size")
        content.append(available[:break_at])
        self._remaining -= len(available)
        return start + len(available)

    def _read_size(self, line: bytes) -> int:
        match = _SIZE_LINE.fullmatch(line)
        if match is None:
            raise FramingError("a chunk does not start with its size")
        size = int(match[1], 16)
        if size and len(self._sizes) < 1024:
            self._sizes[line] = size
        return size

    def _save_pending(self, data: bytes, limit: int) -> None:
        if len(data) > limit:
            raise FramingError("a line between chunks is too long")
        self._pending = data

    def _read_trailer(self, data: bytes) -> None:
        if data.startswith(b"\r\n"):
            self.done, self.trailing_data = True, data[2:]
            return
        end = data.find(b"\r\n\r\n")
        if end < 0:
            self._save_pending(data, _MAX_TRAILERS)
        else:
            self.done, self.trailing_data = True, data[end + 4 :]
