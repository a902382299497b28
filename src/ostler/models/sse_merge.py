"""Merges runs of tiny text events into one event before parsing."""

from itertools import repeat

import msgspec

from ostler.text.lazy_regex import lazy_regex

_MIN_BLOCK_SIZE = 2_048
_SAMPLE_SIZE = 16_384
_STRING_DECODER = msgspec.json.Decoder(str)
# Values of these keys are fragments that can be joined. Only values without escapes match.
_TEXT_FIELD = lazy_regex(
    rb'"(content|reasoning_content|reasoning|arguments|text|thinking|partial_json)": ?"([^"\\\x00-\x1f\x80-\xff]*)"'
)


class SseMerger:
    """Merges consecutive events that differ only in one text value.

    The shape is learned from an event in the middle of a block and tried on later blocks. Where it does not fit, the
    block is unchanged.
    """

    def __init__(self) -> None:
        self._head = b""
        self._tail = b""

    def merge(self, block: bytes) -> bytes:
        """Return a block of complete events with its run of text events merged, or unchanged."""
        if len(block) < _MIN_BLOCK_SIZE:
            return block
        if not self._head or self._head not in block:
            self._learn_shape(block)
        return self._merge_run(block) if self._head else block

    def _learn_shape(self, block: bytes) -> None:
        """Learn head and tail from the first suitable event in the middle of the block."""
        self._head = b""
        middle = block[block.find(b"\n\n", len(block) // 2) + 2 :][:_SAMPLE_SIZE]
        for event in middle.split(b"\n\n")[:-1]:
            fields = list(_TEXT_FIELD.finditer(event))
            names_tool = fields and fields[0][1] == b"arguments" and b'"name"' in event  # may start another call
            if len(fields) == 1 and event.count(b"data:") == 1 and not names_tool:
                self._head, self._tail = event[: fields[0].start(2)], event[fields[0].end(2) :]
                return

    def _merge_run(self, block: bytes) -> bytes:
        """Merge everything from the first to the last event of the shape, if no other event is between them."""
        start = block.find(self._head)
        end = block.find(b"\n\n", block.rfind(self._head)) + 2
        if start < 0 or block[max(0, start - 2) : start] not in (b"", b"\n\n"):
            return block
        text = self._run_text(block[start:end])
        return block if text is None else b"".join((block[:start], self._head, text, self._tail, b"\n\n", block[end:]))

    def _run_text(self, run: bytes) -> bytes | None:
        """Return the joined text of a run, or None if an event has another shape."""
        lines = run.split(b"\n")[:-1]
        *fixed_lines, head = self._head.split(b"\n")
        step = len(fixed_lines) + 2
        events = lines[len(fixed_lines) :: step]
        same = all(set(lines[index::step]) == {name} for index, name in enumerate(fixed_lines))
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
    """Whether a quote after the text would be escaped."""
    return bool((len(text) - len(text.rstrip(b"\\"))) % 2)


def _is_json_string(text: bytes) -> bool:
    """Whether the text is valid inside a JSON string."""
    try:
        _STRING_DECODER.decode(b'"' + text + b'"')
    except ValueError:
        return False
    return True
