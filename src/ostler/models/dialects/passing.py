"""Parts of an answer in which nothing is a call: reasoning in its middle, and code in fences."""

import re
from collections.abc import Callable

from ostler.models.dialects.call_json import TextCall
from ostler.models.dialects.outlet import Outlet
from ostler.models.dialects.tape import Reading, Tape

Tagged = Callable[[], Reading[list[TextCall] | None]]

_FENCE = re.compile(r"(`{1,64})([\w+.-]{0,30})")
_LONGEST_FENCE_LINE = 80


def fence_here(tape: Tape) -> Reading[re.Match[str]]:
    """The backticks that begin here, and the word behind them; reads nothing."""
    while True:
        found = _FENCE.match(tape.window, tape.at)
        assert found is not None, "a backtick stands here"
        decided = found.end() < len(tape.window) or (len(found[1]) < 3 and found[2])
        if tape.ended or decided:
            return found
        yield


def pass_thought(tape: Tape, outlet: Outlet, closer: str) -> Reading[None]:
    """Reasoning in the middle of an answer, to its closing tag."""
    while True:
        at = tape.window.find("<", tape.at)
        outlet.say(tape.take(None if at < 0 else at))
        closed = at >= 0 and (yield from tape.peek_literal((closer,)))
        if closed or (at < 0 and tape.ended):
            return
        if at >= 0:
            outlet.say(tape.take(at + 1))
        else:
            yield


class Fence:
    """Code, to its closing fence. One that is never closed holds no code to its end: calls that end it are meant."""

    def __init__(self, tape: Tape, outlet: Outlet, ticks: str, tagged: Tagged) -> None:
        """`tagged` reads the calls behind a tag, if some stand here."""
        self._tape = tape
        self._outlet = outlet
        self._ticks = ticks
        self._tagged = tagged

    def pass_by(self, *, opening: bool) -> Reading[None]:
        """Read all of it. The opening line itself may be all there is."""
        line = "" if self._outlet.at_line_start else "-"
        while True:
            if not line and not opening and (yield from self._tape.peek()) in ("<", "["):
                line = yield from self._look()
            end = self._tape.window.find("\n", self._tape.at)
            piece = self._tape.take(None if end < 0 else end + 1)
            line += piece[: _LONGEST_FENCE_LINE - len(line)] if len(line) < _LONGEST_FENCE_LINE else ""
            self._outlet.say(piece)
            if end >= 0 and (self._closed_by(line) or (opening and self._ticks in line)):
                return
            if end >= 0:
                line, opening = "", False
            elif self._tape.ended:
                return
            else:
                yield

    def _look(self) -> Reading[str]:
        """Calls at a line's start wait for the answer's end; what of the line was read otherwise."""
        self._tape.mark()
        calls = yield from self._tagged()
        source = self._tape.source()
        if calls:
            self._outlet.call_if_last(calls, source)
            return "-"
        self._outlet.say(source)
        return source.rpartition("\n")[2][:_LONGEST_FENCE_LINE]

    def _closed_by(self, line: str) -> bool:
        line = line.strip()
        return line.startswith(self._ticks) and not line.strip("`")
