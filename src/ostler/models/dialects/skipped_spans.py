"""Spans of a reply in which calls are ignored: reasoning and code fences."""

import re
from collections.abc import Callable

from ostler.models.dialects.call_buffer import CallBuffer
from ostler.models.dialects.call_json import TextCall
from ostler.models.dialects.incremental_reader import IncrementalReader, ParseGenerator

ReadTaggedCalls = Callable[[], ParseGenerator[list[TextCall] | None]]

_FENCE = re.compile(r"(`{1,64}|~{1,64})([\w+.-]{0,30})")
_MAX_FENCE_LINE = 80


def match_fence(reader: IncrementalReader) -> ParseGenerator[re.Match[str]]:
    """Match the backticks at the current position and the word after them. Consumes nothing."""
    while True:
        match = _FENCE.match(reader.buffer, reader.position)
        assert match is not None, "no backtick at the current position"
        decided = match.end() < len(reader.buffer) or (len(match[1]) < 3 and match[2])
        if reader.ended or decided:
            return match
        yield


def skip_thought(reader: IncrementalReader, call_buffer: CallBuffer, closer: str) -> ParseGenerator[None]:
    """Copy reasoning in the middle of an answer up to its closing tag."""
    while True:
        index = reader.buffer.find("<", reader.position)
        call_buffer.add_text(reader.read(None if index < 0 else index))
        closed = index >= 0 and (yield from reader.peek_literal((closer,)))
        if closed or (index < 0 and reader.ended):
            return
        if index >= 0:
            call_buffer.add_text(reader.read(index + 1))
        else:
            yield


class FenceSkipper:
    """Copies code up to its closing fence. In an unclosed fence, calls at the end of the answer are valid."""

    def __init__(
        self, reader: IncrementalReader, call_buffer: CallBuffer, ticks: str, read_tagged_calls: ReadTaggedCalls | None
    ) -> None:
        """`read_tagged_calls` reads the calls after a tag at the current position, if there are any; None: no calls."""
        self._reader = reader
        self._call_buffer = call_buffer
        self._ticks = ticks
        self._read_tagged_calls = read_tagged_calls

    def skip(self, *, opening: bool) -> ParseGenerator[None]:
        """Copy the whole fence. With `opening`, a fence that closes on its first line ends there."""
        line = "" if self._call_buffer.at_line_start else "-"
        while True:
            if not line and not opening and self._read_tagged_calls and (yield from self._reader.peek()) in ("<", "["):
                line = yield from self._read_line_start()
            end = self._reader.buffer.find("\n", self._reader.position)
            text = self._reader.read(None if end < 0 else end + 1)
            line += text[: _MAX_FENCE_LINE - len(line)] if len(line) < _MAX_FENCE_LINE else ""
            self._call_buffer.add_text(text)
            if end >= 0 and (self._is_closed_by(line) or (opening and self._ticks in line)):
                return
            if end >= 0:
                line, opening = "", False
            elif self._reader.ended:
                return
            else:
                yield

    def _read_line_start(self) -> ParseGenerator[str]:
        """Hold back calls at the start of a line. Return the part of the line that was read."""
        assert self._read_tagged_calls is not None
        self._reader.mark()
        calls = yield from self._read_tagged_calls()
        source = self._reader.text_since_mark()
        if calls:
            self._call_buffer.add_calls_if_last(calls, source)
            return "-"
        self._call_buffer.add_text(source)
        return source.rpartition("\n")[2][:_MAX_FENCE_LINE]

    def _is_closed_by(self, line: str) -> bool:
        line = line.strip()
        return line.startswith(self._ticks) and not line.strip(self._ticks[0])
