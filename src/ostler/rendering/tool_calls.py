"""Calls as lines: one at a time is announced, and the results of others wait for its own, each below its line."""

import msgspec

from ostler.core.display import Display, DisplayDiff
from ostler.rendering.blocks import render_call, render_result
from ostler.rendering.style import Styler
from ostler.session.transcript import CallBlock


class ToolCallRenderer:
    """Feed it call blocks as they change; it returns the lines that each change adds."""

    def __init__(self, paint: Styler, *, full_output: bool = False) -> None:
        """`whole`: results in full; what a person ran by hand is always shown so."""
        self.full_output = full_output
        self.running: CallBlock | None = None  # announced, and without a result yet
        self.last: CallBlock | None = None  # the one whose result was shown last
        self._paint = paint
        self._interrupted = False
        self._deferred: list[CallBlock] = []
        self._finished: set[str] = set()
        self._previewed: set[str] = set()

    def mark_previewed(self, preview: Display) -> None:
        """The person was shown this before it was done; the same diff is not shown again as a result."""
        self._previewed.update(part.diff for part in preview.blocks if isinstance(part, DisplayDiff))

    def on_text(self) -> None:
        """Something was said meanwhile: the result of the call that runs gets the call's line anew."""
        self._interrupted = self.running is not None

    def render(self, block: CallBlock) -> list[str]:
        """The lines to add."""
        if block.id in self._finished:
            return []
        lines: list[str] = []
        if self.running is None and block.call and block.status != "waiting":
            self.running = block
            lines.append(render_call(block.call, self._paint, block.title))
        if not block.final:
            return lines
        self._finished.add(block.id)
        if block is not self.running:
            self._deferred.append(block)
            return lines
        lines += self._render_with_call(block) if self._interrupted else self._render_result(block)
        self.running, self._interrupted, held, self._deferred = None, False, self._deferred, []
        for other in held:
            lines += self._render_with_call(other)
        return lines

    def render_last_call(self) -> list[str]:
        """The last call in full."""
        block = self.last
        if block is None or block.call is None:
            return []
        return [
            render_call(block.call, self._paint, block.title, full=True),
            *render_result(block, self._paint, full=True),
        ]

    def _render_with_call(self, block: CallBlock) -> list[str]:
        line = [render_call(block.call, self._paint, block.title)] if block.call else []
        return [*line, *self._render_result(block)]

    def _render_result(self, block: CallBlock) -> list[str]:
        self.last = block
        by_hand = block.call is not None and block.call.origin == "person"
        shown = block if self.full_output else self._without_previewed(block)
        return list(render_result(shown, self._paint, full=self.full_output or by_hand))

    def _without_previewed(self, block: CallBlock) -> CallBlock:
        display = block.display
        new = [part for part in display.blocks if not (isinstance(part, DisplayDiff) and part.diff in self._previewed)]
        return msgspec.structs.replace(block, display=Display(display.summary, tuple(new)))
