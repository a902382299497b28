"""A message of the model as lines while it is still being said: each line is given out once, when it is whole.

What a message is (PLAN before calls, else ANSWER) is known only at its end, and what is printed cannot be changed. So a
message that is settled before its first line was whole gets its heading; one that streams begins with a bullet, and the
answer is marked as such below its last line.
"""

from itertools import dropwhile
from typing import Literal

from ostler.rendering.blocks import indent
from ostler.rendering.markdown import MarkdownRenderer, render_markdown
from ostler.rendering.style import Styler
from ostler.text.sanitise import Sanitiser, sanitise

MAX_PARTIAL_LENGTH = 1000


class MessageRenderer:
    """One message: feed it what arrives, then what it came to."""

    def __init__(self, paint: Styler) -> None:
        self._paint = paint
        self._sanitiser = Sanitiser()
        self._markdown = MarkdownRenderer(paint)
        self._chunks: list[str] = []
        self._partial: list[str] = []
        self._started = False

    @property
    def text(self) -> str:
        """All that was fed."""
        return "".join(self._chunks)

    @property
    def partial_line(self) -> str:
        """The end of the line that is not whole yet."""
        return "".join(self._partial[-MAX_PARTIAL_LENGTH:])[-MAX_PARTIAL_LENGTH:]

    def feed(self, text: str) -> list[str]:
        """The lines that this made whole."""
        self._chunks.append(text)
        first, *more = self._sanitiser.feed(text).split("\n")
        self._partial.append(first)
        if not more:
            return []
        whole, self._partial = ["".join(self._partial), *more[:-1]], [more[-1]]
        if not self._started:
            whole = list(dropwhile(lambda line: not line.strip(), whole))
        return self._render_lines(whole)

    def catch_up(self, text: str) -> list[str]:
        """The lines that were made whole by what was missed; what it does not go on with is mended when it is done."""
        said = self.text
        return self.feed(text[len(said) :]) if text.startswith(said) else []

    def finish(self, text: str, segment: Literal["plan", "answer"], *, truncated: bool) -> list[str]:
        """What is left to print when the message is settled."""
        lines = self._finish_streamed(text) if self._started else [self._heading(segment), *self._render_full(text)]
        if truncated:
            return [*lines, self._paint("  [cut off here]", "yellow")]
        return [*lines, self._paint("  ↑ ANSWER", "dim")] if self._started and segment == "answer" else lines

    def _finish_streamed(self, text: str) -> list[str]:
        """The rest of what streamed; all of it anew where that was not what the message came to."""
        said = self.text
        if text.startswith(said):
            return [*self.feed(text[len(said) :]), *self._flush()]
        return [*self._flush(), self._paint("  [the whole of it:]", "dim"), *self._render_full(text)]

    def _render_full(self, text: str) -> list[str]:
        return indent(render_markdown(sanitise(text).strip("\n"), self._paint))

    def _flush(self) -> list[str]:
        rest, self._partial = "".join((*self._partial, self._sanitiser.flush())), []
        return [*self._render_lines([line for line in rest.split("\n") if line]), *indent(self._markdown.flush())]

    def _render_lines(self, lines: list[str]) -> list[str]:
        drawn = [shown for line in lines for shown in self._markdown.feed_line(line)]
        if not drawn or self._started:
            return indent(drawn)
        self._started = True
        return [f"{self._paint('●', 'green')} {drawn[0]}", *indent(drawn[1:])]

    def _heading(self, segment: str) -> str:
        return self._paint(segment.upper(), "bold", "blue" if segment == "plan" else "green")
