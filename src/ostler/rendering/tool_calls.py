"""Renders tool calls and their results in order while calls run in parallel.

One call at a time is announced, when it starts: an approval request before that has a heading of its own. The results
of other calls wait for its result, each below the line of its call.
"""

import msgspec

from ostler.core.display import Display, DisplayDiff
from ostler.rendering.blocks import render_call, render_result
from ostler.rendering.style import Styler
from ostler.session.transcript import CallBlock


class ToolCallRenderer:
    """Renders call blocks as they change."""

    def __init__(self, paint: Styler) -> None:
        self.full_output = False  # results of manual calls are always shown in full
        self.running: CallBlock | None = None  # announced, without a result yet
        self.last: CallBlock | None = None  # the call whose result was shown last
        self._paint = paint
        self._interrupted = False
        self._deferred: list[CallBlock] = []
        self._finished: set[str] = set()
        self._previewed: set[str] = set()

    def mark_previewed(self, preview: Display) -> None:
        """Record the diffs that the user saw in an approval request; they are not repeated in the result."""
        self._previewed.update(block.diff for block in preview.blocks if isinstance(block, DisplayDiff))

    def on_text(self) -> None:
        """Record that text was printed during a call, so that its line is repeated above its result."""
        self._interrupted = self.running is not None

    def render(self, block: CallBlock) -> list[str]:
        """Return the lines that a change of a block adds."""
        if block.id in self._finished:
            return []
        lines: list[str] = []
        if self.running is None and block.call and block.status not in ("waiting", "asking"):
            self.running = block
            lines.append(render_call(block.call, self._paint, block.title))
        if not block.final:
            return lines
        self._finished.add(block.id)
        if block is not self.running:
            self._deferred.append(block)
            return lines
        lines += self._render_with_call(block) if self._interrupted else self._render_result(block)
        self.running, self._interrupted, deferred, self._deferred = None, False, self._deferred, []
        for other in deferred:
            lines += self._render_with_call(other)
        return lines

    def render_last_call(self) -> list[str]:
        """Return the last call and its result in full."""
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
        is_manual = block.call is not None and block.call.origin == "person"
        shown = block if self.full_output else self._without_previewed(block)
        return list(render_result(shown, self._paint, full=self.full_output or is_manual))

    def _without_previewed(self, block: CallBlock) -> CallBlock:
        display = block.display
        blocks = [
            part for part in display.blocks if not (isinstance(part, DisplayDiff) and part.diff in self._previewed)
        ]
        return msgspec.structs.replace(block, display=Display(display.summary, tuple(blocks)))
