"""Runs of events that differ only in one piece of text, made one event each: what a burst of tiny deltas mostly is."""

from itertools import repeat

import msgspec

from ostler.text.lazy_regex import lazy_regex

_MIN_BLOCK_SIZE = 2_048
_SAMPLE_SIZE = 16_384
_STRING_DECODER = msgspec.json.Decoder(str)
# A value of these keys goes on with the one before it; plain letters, so that it stands in the bytes as it is.
_TEXT_FIELD = lazy_regex(
    rb'"(content|reasoning_content|reasoning|arguments|text|thinking|partial_json)": ?"([^"\\\x00-\x1f\x80-\xff]*)"'
)


class SseMerger:
    """Joins such runs before anyone reads the events: the same JSON around a growing text is the same event, grown.

    The shape is learned from an event in the middle of a block and tried on the next ones; where it does not fit,
    the block stays as it is.
    """

    def __init__(self) -> None:
        self._head = b""
        self._tail = b""

    def merge(self, block: bytes) -> bytes:
        """Whole events as they came, or with their first long run as one event."""
        if len(block) < _MIN_BLOCK_SIZE:
            return block
        if not self._head or self._head not in block:
            self._learn_shape(block)
        return self._merge_run(block) if self._head else block

    def _learn_shape(self, block: bytes) -> None:
        """From the first of some events in the middle whose text needs no escapes."""
        self._head = b""
        middle = block[block.find(b"\n\n", len(block) // 2) + 2 :][:_SAMPLE_SIZE]
        for event in middle.split(b"\n\n")[:-1]:
            found = list(_TEXT_FIELD.finditer(event))
            names_tool = found and found[0][1] == b"arguments" and b'"name"' in event  # it may begin a call of its own
            if len(found) == 1 and event.count(b"data:") == 1 and not names_tool:
                self._head, self._tail = event[: found[0].start(2)], event[found[0].end(2) :]
                return

    def _merge_run(self, block: bytes) -> bytes:
        """The block with all from the first such event to the last one as one, if nothing else is among them."""
        begin = block.find(self._head)
        end = block.find(b"\n\n", block.rfind(self._head)) + 2
        if begin < 0 or block[max(0, begin - 2) : begin] not in (b"", b"\n\n"):
            return block
        text = self._run_text(block[begin:end])
        return block if text is None else b"".join((block[:begin], self._head, text, self._tail, b"\n\n", block[end:]))

    def _run_text(self, run: bytes) -> bytes | None:
        """The text of all events of a run, unless one of them has another shape."""
        lines = run.split(b"\n")[:-1]
        *names, head = self._head.split(b"\n")
        step = len(names) + 2
        events = lines[len(names) :: step]
        same = all(set(lines[at::step]) == {name} for at, name in enumerate(names))
        if not same or any(lines[step - 1 :: step]) or not _all_have_shape(events, head, self._tail):
            return None
        texts = [event[len(head) : -len(self._tail)] for event in events]
        if b"\\" + self._tail in run and any(map(_ends_in_escape, texts)):
            return None
        text = b"".join(texts)
        return text if _is_json_string(text) else None


def _all_have_shape(events: list[bytes], head: bytes, tail: bytes) -> bool:
    return all(map(bytes.startswith, events, repeat(head))) and all(map(bytes.endswith, events, repeat(tail)))


def _ends_in_escape(text: bytes) -> bool:
    """Whether the quote behind it is escaped."""
    return bool((len(text) - len(text.rstrip(b"\\"))) % 2)


def _is_json_string(text: bytes) -> bool:
    """Whether it can stand in a JSON string: no quote ends it early."""
    try:
        _STRING_DECODER.decode(b'"' + text + b'"')
    except ValueError:
        return False
    return True
