"""Parts of an answer in which nothing is a call: reasoning in its middle, and code in fences."""

import re
from collections.abc import Callable

from ostler.models.dialects.call_buffer import CallBuffer
from ostler.models.dialects.call_json import TextCall
from ostler.models.dialects.incremental_reader import IncrementalReader, ParseGenerator

ReadTaggedCalls = Callable[[], ParseGenerator[list[TextCall] | None]]

_FENCE = re.compile(r"(`{1,64})([\w+.-]{0,30})")
_MAX_FENCE_LINE = 80


def match_fence(reader: IncrementalReader) -> ParseGenerator[re.Match[str]]:
    """The backticks that begin here, and the word behind them; reads nothing."""
    while True:
        found = _FENCE.match(reader.buffer, reader.position)
        assert found is not None, "a backtick stands here"
        decided = found.end() < len(reader.buffer) or (len(found[1]) < 3 and found[2])
        if reader.ended or decided:
            return found
        yield


def skip_thought(reader: IncrementalReader, call_buffer: CallBuffer, closer: str) -> ParseGenerator[None]:
    """Reasoning in the middle of an answer, to its closing tag."""
    while True:
        at = reader.buffer.find("<", reader.position)
        call_buffer.add_text(reader.read(None if at < 0 else at))
        closed = at >= 0 and (yield from reader.peek_literal((closer,)))
        if closed or (at < 0 and reader.ended):
            return
        if at >= 0:
            call_buffer.add_text(reader.read(at + 1))
        else:
            yield


class FenceSkipper:
    """Code, to its closing fence. One that is never closed holds no code to its end: calls that end it are meant."""

    def __init__(
        self, reader: IncrementalReader, call_buffer: CallBuffer, ticks: str, read_tagged_calls: ReadTaggedCalls
    ) -> None:
        """`tagged` reads the calls behind a tag, if some stand here."""
        self._reader = reader
        self._call_buffer = call_buffer
        self._ticks = ticks
        self._read_tagged_calls = read_tagged_calls

    def skip(self, *, opening: bool) -> ParseGenerator[None]:
        """Read all of it. The opening line itself may be all there is."""
        line = "" if self._call_buffer.at_line_start else "-"
        while True:
            if not line and not opening and (yield from self._reader.peek()) in ("<", "["):
                line = yield from self._read_line_start()
            end = self._reader.buffer.find("\n", self._reader.position)
            piece = self._reader.read(None if end < 0 else end + 1)
            line += piece[: _MAX_FENCE_LINE - len(line)] if len(line) < _MAX_FENCE_LINE else ""
            self._call_buffer.add_text(piece)
            if end >= 0 and (self._is_closed_by(line) or (opening and self._ticks in line)):
                return
            if end >= 0:
                line, opening = "", False
            elif self._reader.ended:
                return
            else:
                yield

    def _read_line_start(self) -> ParseGenerator[str]:
        """Calls at a line's start wait for the answer's end; what of the line was read otherwise."""
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
        return line.startswith(self._ticks) and not line.strip("`")
