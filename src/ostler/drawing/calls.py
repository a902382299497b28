"""Calls as lines: one at a time is announced, and the results of others wait for its own, each below its line."""

import msgspec

from ostler.drawing.lines import call_line, result_lines
from ostler.drawing.paint import Paint
from ostler.session.transcript import CallBlock
from ostler.vocabulary.display import DiffShown, Display


class CallLines:
    """Feed it call blocks as they change; it returns the lines that each change adds."""

    def __init__(self, paint: Paint, *, whole: bool = False) -> None:
        """`whole`: results in full; what a person ran by hand is always shown so."""
        self.whole = whole
        self.running: CallBlock | None = None  # announced, and without a result yet
        self.last: CallBlock | None = None  # the one whose result was shown last
        self._paint = paint
        self._parted = False
        self._held: list[CallBlock] = []
        self._settled: set[str] = set()
        self._seen: set[str] = set()

    def seen(self, asked: Display) -> None:
        """The person was shown this before it was done; the same diff is not shown again as a result."""
        self._seen.update(part.diff for part in asked.blocks if isinstance(part, DiffShown))

    def words(self) -> None:
        """Something was said meanwhile: the result of the call that runs gets the call's line anew."""
        self._parted = self.running is not None

    def take(self, block: CallBlock) -> list[str]:
        """The lines to add."""
        if block.id in self._settled:
            return []
        lines: list[str] = []
        if self.running is None and block.call and block.status != "waiting":
            self.running = block
            lines.append(call_line(block.call, self._paint, block.title))
        if not block.settled:
            return lines
        self._settled.add(block.id)
        if block is not self.running:
            self._held.append(block)
            return lines
        lines += self._anew(block) if self._parted else self._result(block)
        self.running, self._parted, held, self._held = None, False, self._held, []
        for other in held:
            lines += self._anew(other)
        return lines

    def again(self) -> list[str]:
        """The last call in full."""
        block = self.last
        if block is None or block.call is None:
            return []
        return [
            call_line(block.call, self._paint, block.title, whole=True),
            *result_lines(block, self._paint, whole=True),
        ]

    def _anew(self, block: CallBlock) -> list[str]:
        line = [call_line(block.call, self._paint, block.title)] if block.call else []
        return [*line, *self._result(block)]

    def _result(self, block: CallBlock) -> list[str]:
        self.last = block
        by_hand = block.call is not None and block.call.origin == "person"
        shown = block if self.whole else self._unseen(block)
        return list(result_lines(shown, self._paint, whole=self.whole or by_hand))

    def _unseen(self, block: CallBlock) -> CallBlock:
        display = block.display
        new = [part for part in display.blocks if not (isinstance(part, DiffShown) and part.diff in self._seen)]
        return msgspec.structs.replace(block, display=Display(display.summary, tuple(new)))
