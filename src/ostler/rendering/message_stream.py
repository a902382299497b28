"""Renders a model message while it streams; emits each line once, when it is complete.

Whether a message is a PLAN (before calls) or an ANSWER is known only at its end, and printed lines cannot change. A
message that ends before its first line is complete gets a heading. One that streams starts with a bullet; if it is the
answer, a mark follows its last line.
"""

from itertools import dropwhile
from typing import Literal

from ostler.rendering.blocks import indent
from ostler.rendering.markdown import MarkdownRenderer, render_markdown
from ostler.rendering.style import Styler
from ostler.text.sanitise import Sanitiser, sanitise

MAX_PARTIAL_LENGTH = 1000


class MessageRenderer:
    """Renders one message. Call `feed` with each delta, then `finish` with the final text."""

    def __init__(self, paint: Styler) -> None:
        self._paint = paint
        self._sanitiser = Sanitiser()
        self._markdown = MarkdownRenderer(paint)
        self._chunks: list[str] = []
        self._partial: list[str] = []
        self._started = False

    @property
    def text(self) -> str:
        """The text received so far."""
        return "".join(self._chunks)

    @property
    def partial_line(self) -> str:
        """The end of the line that is not complete yet."""
        return "".join(self._partial[-MAX_PARTIAL_LENGTH:])[-MAX_PARTIAL_LENGTH:]

    def feed(self, text: str) -> list[str]:
        """Return the lines that this text completes."""
        self._chunks.append(text)
        first, *more = self._sanitiser.feed(text).split("\n")
        self._partial.append(first)
        if not more:
            return []
        complete, self._partial = ["".join(self._partial), *more[:-1]], [more[-1]]
        if not self._started:
            complete = list(dropwhile(lambda line: not line.strip(), complete))
        return self._render_lines(complete)

    def catch_up(self, text: str) -> list[str]:
        """Return the lines completed by missed text. If `text` differs from what was received, `finish` repairs it."""
        received = self.text
        return self.feed(text[len(received) :]) if text.startswith(received) else []

    def finish(self, text: str, segment: Literal["plan", "answer"], *, truncated: bool) -> list[str]:
        """Return the remaining lines of the message, whose final text is `text`."""
        lines = self._finish_streamed(text) if self._started else [self._heading(segment), *self._render_full(text)]
        if truncated:
            return [*lines, self._paint("  [truncated]", "yellow")]
        return [*lines, self._paint("  ↑ ANSWER", "dim")] if self._started and segment == "answer" else lines

    def _finish_streamed(self, text: str) -> list[str]:
        """Return the rest of a streamed message, or the full message if its final text differs."""
        received = self.text
        if text.startswith(received):
            return [*self.feed(text[len(received) :]), *self._flush()]
        return [*self._flush(), self._paint("  [full message:]", "dim"), *self._render_full(text)]

    def _render_full(self, text: str) -> list[str]:
        return indent(render_markdown(sanitise(text).strip("\n"), self._paint))

    def _flush(self) -> list[str]:
        rest, self._partial = "".join((*self._partial, self._sanitiser.flush())), []
        return [*self._render_lines([line for line in rest.split("\n") if line]), *indent(self._markdown.flush())]

    def _render_lines(self, lines: list[str]) -> list[str]:
        rendered = [row for line in lines for row in self._markdown.feed_line(line)]
        if not rendered or self._started:
            return indent(rendered)
        self._started = True
        return [f"{self._paint('●', 'green')} {rendered[0]}", *indent(rendered[1:])]

    def _heading(self, segment: str) -> str:
        return self._paint(segment.upper(), "bold", "blue" if segment == "plan" else "green")
