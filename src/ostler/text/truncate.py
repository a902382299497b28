"""Truncates text in the middle and says how much is missing."""

import re

import msgspec

from ostler.text.lazy_regex import lazy_regex

_STREAM_MARKER = lazy_regex(r"^\[\.\.\. [0-9]+ bytes, ([0-9]{1,15}) lines omitted \.\.\.\]$", re.MULTILINE)
# A cut may move by this fraction (1/n) of the head or tail to reach a line break.
_LINE_REACH = 5
# A cut may move by this many characters to keep a character and its combining marks together.
_CLUSTER_REACH = 32


class TruncatedText(msgspec.Struct, frozen=True):
    """Text of limited length. `omitted` is the number of omitted characters or lines."""

    text: str
    truncated: bool
    omitted: int


def omission_marker(omitted: int, unit: str) -> str:
    return f"[... {omitted} {unit} omitted ...]"


def omitted_lines(text: str) -> int:
    """Return the number of lines that the markers of streams in a text stand for, without the markers themselves."""
    return sum(int(match[1]) - 1 for match in _STREAM_MARKER.finditer(text))


def truncate_middle(text: str, limit: int, *, unit: str = "characters") -> TruncatedText:
    """Return the head and the tail of a text, with at most `limit` characters including the marker.

    `unit` names the characters in the marker. If the limit is too small, the marker itself is truncated.
    """
    if len(text) <= limit:
        return TruncatedText(text, truncated=False, omitted=0)
    room = limit - len(omission_marker(len(text), unit)) - 2
    if room < 2:
        return TruncatedText(omission_marker(len(text), unit)[: max(limit, 0)], truncated=True, omitted=len(text))
    head = _head_end(text, room - room // 2)
    tail = _tail_start(text, len(text) - room // 2)
    omitted = tail - head
    marker = omission_marker(omitted, unit)
    newline = "" if head == 0 or text[head - 1] == "\n" else "\n"
    return TruncatedText(f"{text[:head]}{newline}{marker}\n{text[tail:]}", truncated=True, omitted=omitted)


def truncate_lines(text: str, max_lines: int) -> TruncatedText:
    """Return at most `max_lines` lines from the head and the tail of a text, and a marker between them."""
    lines = text.split("\n")
    end = [lines.pop()] if lines[-1] == "" else []
    if len(lines) <= max_lines:
        return TruncatedText(text, truncated=False, omitted=0)
    line_count = max(max_lines, 0)
    omitted = len(lines) - line_count
    head, tail = lines[: line_count - line_count // 2], lines[len(lines) - line_count // 2 :]
    return TruncatedText(
        "\n".join([*head, omission_marker(omitted, "lines"), *tail, *end]), truncated=True, omitted=omitted
    )


def _head_end(text: str, pos: int) -> int:
    """Return where to end the head: at `pos`, or earlier at a line break or character border."""
    newline = text.rfind("\n", pos - pos // _LINE_REACH, pos)
    if newline >= 0:
        return newline + 1
    for index in range(pos, max(pos - _CLUSTER_REACH, 0), -1):
        if not _splits_cluster(text, index):
            return index
    return pos


def _tail_start(text: str, pos: int) -> int:
    """Return where to start the tail: at `pos`, or later at a line break or character border."""
    newline = text.find("\n", pos - 1, pos + (len(text) - pos) // _LINE_REACH)
    if newline >= 0:
        return newline + 1
    for index in range(pos, min(pos + _CLUSTER_REACH, len(text))):
        if not _splits_cluster(text, index):
            return index
    return pos


def _splits_cluster(text: str, pos: int) -> bool:
    """Return whether a cut before `pos` splits a character from its combining marks."""
    before, after = text[pos - 1], text[pos]
    if after < "\u0300":
        return before == "\r" and after == "\n"
    if "\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff":
        return True
    if before == "\u200d" or after in "\u200d\ufe0e\ufe0f" or "\U0001f3fb" <= after <= "\U0001f3ff":
        return True
    import unicodedata

    return unicodedata.category(after) in ("Mn", "Me", "Mc")


class HeadTail:
    """Collects the first and last bytes of a stream in bounded memory."""

    def __init__(self, head: int, tail: int, errors: str = "replace") -> None:
        self.total = 0
        self._newlines = 0
        self._errors = errors
        self._head_size = head
        self._tail_size = tail
        self._head = bytearray()
        self._tail = bytearray()

    @property
    def truncated(self) -> bool:
        return self.total > self._head_size + self._tail_size

    def feed(self, chunk: bytes) -> None:
        self.total += len(chunk)
        self._newlines += chunk.count(b"\n")
        room = self._head_size - len(self._head)
        self._head += chunk[:room]
        rest = memoryview(chunk)[room:]
        self._tail += rest[max(len(rest) - self._tail_size, 0) :]
        # Trimmed only at twice the size, so that many small chunks stay cheap.
        if len(self._tail) > 2 * self._tail_size:
            self._trim()

    def text(self) -> str:
        """Return the collected bytes as text; characters split by the cut are omitted."""
        self._trim()
        if not self.truncated:
            return (self._head + self._tail).decode("utf-8", self._errors)
        head, tail = _drop_partial_end(self._head), _drop_partial_start(self._tail)
        newline = "" if not head or head.endswith(b"\n") else "\n"
        lines = self._newlines - head.count(b"\n") - tail.count(b"\n") - len(newline)
        unit = f"bytes, {lines} lines" if lines > 0 else "bytes"
        marker = omission_marker(self.total - len(head) - len(tail), unit)
        return f"{head.decode('utf-8', self._errors)}{newline}{marker}\n{tail.decode('utf-8', self._errors)}"

    def _trim(self) -> None:
        del self._tail[: max(len(self._tail) - self._tail_size, 0)]


def _drop_partial_end(data: bytearray) -> bytearray:
    """Drop an incomplete UTF-8 character at the end."""
    for back in range(1, min(3, len(data)) + 1):
        byte = data[-back]
        if 0xC0 <= byte < 0xF8:
            needs = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data[:-back] if back < needs else data
        if byte < 0x80:
            break
    return data


def _drop_partial_start(data: bytearray) -> bytearray:
    """Drop the rest of a UTF-8 character at the start."""
    start = 0
    while start < min(3, len(data)) and 0x80 <= data[start] < 0xC0:
        start += 1
    return data[start:]
