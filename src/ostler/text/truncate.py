"""Bound text by leaving out its middle, with a marker that says how much is missing."""

import msgspec

# How far a cut may move to land on the border of a line, as a share of the part that is kept.
_LINE_REACH = 5
# How far a cut may move to keep a character and its marks together.
_CLUSTER_REACH = 32


class TruncatedText(msgspec.Struct, frozen=True):
    """Bounded text; `left_out` is 0 when all of it is there."""

    text: str
    truncated: bool
    omitted: int


def omission_marker(omitted: int, unit: str) -> str:
    return f"[... {omitted} {unit} left out ...]"


def truncate_middle(text: str, limit: int, *, unit: str = "characters") -> TruncatedText:
    """At most `limit` characters, marker included: the head and the tail of the text.

    `what` names the characters in the marker. A limit too small for the marker gets what fits of it.
    """
    if len(text) <= limit:
        return TruncatedText(text, truncated=False, omitted=0)
    room = limit - len(omission_marker(len(text), unit)) - 2
    if room < 2:
        return TruncatedText(omission_marker(len(text), unit)[: max(limit, 0)], truncated=True, omitted=len(text))
    head = _head_end(text, room - room // 2)
    tail = _tail_start(text, len(text) - room // 2)
    left_out = tail - head
    between = omission_marker(left_out, unit)
    before = "" if head == 0 or text[head - 1] == "\n" else "\n"
    return TruncatedText(f"{text[:head]}{before}{between}\n{text[tail:]}", truncated=True, omitted=left_out)


def truncate_lines(text: str, max_lines: int) -> TruncatedText:
    """At most `max_lines` lines of the text, from its head and its tail, and a marker between them."""
    lines = text.split("\n")
    end = [lines.pop()] if lines[-1] == "" else []
    if len(lines) <= max_lines:
        return TruncatedText(text, truncated=False, omitted=0)
    kept = max(max_lines, 0)
    left_out = len(lines) - kept
    head, tail = lines[: kept - kept // 2], lines[len(lines) - kept // 2 :]
    return TruncatedText(
        "\n".join([*head, omission_marker(left_out, "lines"), *tail, *end]), truncated=True, omitted=left_out
    )


def _head_end(text: str, pos: int) -> int:
    """A good place to end the head, at or a little before `at`."""
    newline = text.rfind("\n", pos - pos // _LINE_REACH, pos)
    if newline >= 0:
        return newline + 1
    for place in range(pos, max(pos - _CLUSTER_REACH, 0), -1):
        if not _splits_cluster(text, place):
            return place
    return pos


def _tail_start(text: str, pos: int) -> int:
    """A good place to begin the tail, at or a little after `at`."""
    newline = text.find("\n", pos - 1, pos + (len(text) - pos) // _LINE_REACH)
    if newline >= 0:
        return newline + 1
    for place in range(pos, min(pos + _CLUSTER_REACH, len(text))):
        if not _splits_cluster(text, place):
            return place
    return pos


def _splits_cluster(text: str, pos: int) -> bool:
    """Whether a cut before `at` parts a character from what belongs to it."""
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
    """The first and the last bytes of a stream of any length, in bounded memory."""

    def __init__(self, head: int, tail: int, errors: str = "replace") -> None:
        self.total = 0
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
        room = self._head_size - len(self._head)
        self._head += chunk[:room]
        rest = memoryview(chunk)[room:]
        self._tail += rest[max(len(rest) - self._tail_size, 0) :]
        # Trimmed only when it has doubled, so that many small chunks stay cheap.
        if len(self._tail) > 2 * self._tail_size:
            self._trim()

    def text(self) -> str:
        """What was kept, as text; a character that the cut has split is left out whole."""
        self._trim()
        if not self.truncated:
            return (self._head + self._tail).decode("utf-8", self._errors)
        head, tail = _drop_partial_end(self._head), _drop_partial_start(self._tail)
        between = omission_marker(self.total - len(head) - len(tail), "bytes")
        before = "" if not head or head.endswith(b"\n") else "\n"
        return f"{head.decode('utf-8', self._errors)}{before}{between}\n{tail.decode('utf-8', self._errors)}"

    def _trim(self) -> None:
        del self._tail[: max(len(self._tail) - self._tail_size, 0)]


def _drop_partial_end(data: bytearray) -> bytearray:
    """The data without a character that its end has cut in two."""
    for back in range(1, min(3, len(data)) + 1):
        byte = data[-back]
        if 0xC0 <= byte < 0xF8:
            needs = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data[:-back] if back < needs else data
        if byte < 0x80:
            break
    return data


def _drop_partial_start(data: bytearray) -> bytearray:
    """The data without the rest of a character that began before it."""
    start = 0
    while start < min(3, len(data)) and 0x80 <= data[start] < 0xC0:
        start += 1
    return data[start:]
