"""A message of the model as lines while it is still being said: each line is given out once, when it is whole.

What a message is (PLAN before calls, else ANSWER) is known only at its end, and what is printed cannot be changed. So a
message that is settled before its first line was whole gets its heading; one that streams begins with a bullet, and the
answer is marked as such below its last line.
"""

from itertools import dropwhile
from typing import Literal

from ostler.drawing.lines import indented
from ostler.drawing.markdown import Markdown, markdown_lines
from ostler.drawing.paint import Paint
from ostler.text.sanitise import Sanitiser, sanitise

LONGEST_PARTIAL = 1000


class MessageLines:
    """One message: feed it what arrives, then what it came to."""

    def __init__(self, paint: Paint) -> None:
        self._paint = paint
        self._sanitiser = Sanitiser()
        self._markdown = Markdown(paint)
        self._said: list[str] = []
        self._line: list[str] = []
        self._begun = False

    @property
    def said(self) -> str:
        """All that was fed."""
        return "".join(self._said)

    @property
    def partial(self) -> str:
        """The end of the line that is not whole yet."""
        return "".join(self._line[-LONGEST_PARTIAL:])[-LONGEST_PARTIAL:]

    def feed(self, text: str) -> list[str]:
        """The lines that this made whole."""
        self._said.append(text)
        first, *more = self._sanitiser.feed(text).split("\n")
        self._line.append(first)
        if not more:
            return []
        whole, self._line = ["".join(self._line), *more[:-1]], [more[-1]]
        if not self._begun:
            whole = list(dropwhile(lambda line: not line.strip(), whole))
        return self._drawn(whole)

    def catch_up(self, text: str) -> list[str]:
        """The lines that were made whole by what was missed; what it does not go on with is mended when it is done."""
        said = self.said
        return self.feed(text[len(said) :]) if text.startswith(said) else []

    def done(self, text: str, segment: Literal["plan", "answer"], *, cut: bool) -> list[str]:
        """What is left to print when the message is settled."""
        lines = self._ending(text) if self._begun else [self._heading(segment), *self._whole(text)]
        if cut:
            return [*lines, self._paint("  [cut off here]", "yellow")]
        return [*lines, self._paint("  ↑ ANSWER", "dim")] if self._begun and segment == "answer" else lines

    def _ending(self, text: str) -> list[str]:
        """The rest of what streamed; all of it anew where that was not what the message came to."""
        said = self.said
        if text.startswith(said):
            return [*self.feed(text[len(said) :]), *self._rest()]
        return [*self._rest(), self._paint("  [the whole of it:]", "dim"), *self._whole(text)]

    def _whole(self, text: str) -> list[str]:
        return indented(markdown_lines(sanitise(text).strip("\n"), self._paint))

    def _rest(self) -> list[str]:
        rest, self._line = "".join((*self._line, self._sanitiser.flush())), []
        return [*self._drawn([line for line in rest.split("\n") if line]), *indented(self._markdown.rest())]

    def _drawn(self, lines: list[str]) -> list[str]:
        drawn = [shown for line in lines for shown in self._markdown.line(line)]
        if not drawn or self._begun:
            return indented(drawn)
        self._begun = True
        return [f"{self._paint('●', 'green')} {drawn[0]}", *indented(drawn[1:])]

    def _heading(self, segment: str) -> str:
        return self._paint(segment.upper(), "bold", "blue" if segment == "plan" else "green")
