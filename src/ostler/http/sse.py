"""Splits a byte stream into server-sent events."""

from collections.abc import Callable

from ostler.text.lazy_regex import lazy_regex

_NEWLINE = lazy_regex(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"
_MAX_PENDING_COMMENTS = 65_536
_LINE_COST = 64  # counted per line, so that many empty data lines reach the limit too


class EventTooLongError(Exception):
    """An event is longer than the limit."""


class SseSplitter:
    """Returns the data of each complete event, in linear time. Lines end with LF, CRLF or CR.

    A reply can have thousands of events of one `data: ` line each. They are split in a few passes over the whole
    read; everything else goes line by line. `has_partial_data` is True while an event with data is incomplete; comments
    and other fields only keep the connection alive. `last_id` is the id of the last complete event, `retry_ms` how long
    to wait before a new connection, if the server sends it.
    """

    def __init__(
        self, limit: int = 16 * 1024 * 1024, merge_events: Callable[[bytes], bytes] = lambda block: block
    ) -> None:
        """`merge_events` may join events of a block of complete events before they are split."""
        self.has_partial_data = False
        self.last_id = b""
        self.retry_ms: int | None = None
        self._event_id = b""
        self._merge_events = merge_events
        self._limit = limit
        self._started = False
        self._line_mode = False  # set at the first CR
        self._pending = bytearray()  # an incomplete event, or an incomplete line in line mode
        self._data: list[bytes] = []
        self._data_size = 0
        self._after_cr = False

    def feed(self, data: bytes) -> list[bytes]:
        """Return the data of the events that these bytes complete. Raises `EventTooLongError`."""
        events = self._feed(data)
        if events or not self._pending:
            self.has_partial_data = False
        self._find_partial_data(len(data))
        return events

    def _find_partial_data(self, new_bytes: int) -> None:
        """Update `has_partial_data`, looking only at new bytes. Long pending comments are dropped line by line."""
        pending = self._pending
        self.has_partial_data = (
            self.has_partial_data
            or bool(self._data)
            or pending.startswith(b"data")
            or (not self._line_mode and b"\ndata" in pending[-new_bytes - 5 :])
        )
        if not self.has_partial_data and not self._line_mode and len(pending) > _MAX_PENDING_COMMENTS:
            self._line_mode = True
            self._feed_lines(self._take_pending())

    def _feed(self, data: bytes) -> list[bytes]:
        if not self._started and data:
            data = self._strip_bom(data)
        if self._line_mode:
            return self._feed_lines(data)
        if b"\r" in data:
            self._line_mode = True
            return self._feed_lines(self._take_pending() + data)
        end = data.rfind(b"\n\n") + 2
        if end < 2:
            if not (data.startswith(b"\n") and self._pending.endswith(b"\n")):
                self._add_pending(data)
                return []
            end = 1
        events = self._split_events(self._merge_events(self._take_pending() + data[:end]))
        self._add_pending(data[end:])
        return events

    def flush(self) -> list[bytes]:
        """Return the last event at the end of the stream, even without its blank line."""
        return self._feed_lines(self._take_pending() + b"\n\n") if self._pending or self._data else []

    def _strip_bom(self, data: bytes) -> bytes:
        """Remove a byte order mark, after all of it has arrived."""
        data = self._take_pending() + data
        if len(data) < 3 and _BOM.startswith(data):
            self._pending = bytearray(data)
            return b""
        self._started = True
        return data.removeprefix(_BOM)

    def _take_pending(self) -> bytes:
        pending, self._pending = self._pending, bytearray()
        return bytes(pending)

    def _add_pending(self, data: bytes) -> None:
        self._pending += data
        if len(self._pending) + self._data_size > self._limit:
            raise EventTooLongError

    def _split_events(self, block: bytes) -> list[bytes]:
        """Return the events of a block that ends with a blank line and has no CR."""
        if block.startswith(b"data: "):
            body = block[6:-2]
            events = body.split(b"\n\ndata: ")
            if body.count(b"\n") == 2 * (len(events) - 1):
                return events
        return self._feed_lines(block)

    def _feed_lines(self, data: bytes) -> list[bytes]:
        if self._after_cr and data:
            self._after_cr = False
            data = data.removeprefix(b"\n")
        self._after_cr = data.endswith(b"\r")
        lines = _NEWLINE.split(data)
        last = lines.pop()
        events: list[bytes] = []
        if lines and self._pending:
            lines[0] = self._take_pending() + lines[0]
        for line in lines:
            self._handle_line(line, events)
        self._add_pending(last)
        return events

    def _handle_line(self, line: bytes, events: list[bytes]) -> None:
        if not line:
            self.last_id = self._event_id
            if self._data:
                events.append(b"\n".join(self._data))
                self._data, self._data_size = [], 0
        elif line.startswith(b"data:") or line == b"data":
            value = line[5:].removeprefix(b" ")
            self._data.append(value)
            self._data_size += len(value) + _LINE_COST
            if self._data_size > self._limit:
                raise EventTooLongError
        elif line.startswith(b"id:"):
            self._event_id = line[3:].removeprefix(b" ")
        elif line.startswith(b"retry:") and (number := line[6:].strip()).isdigit():
            self.retry_ms = int(number[:9])
