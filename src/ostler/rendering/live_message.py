"""Renders a message that is being received, for a screen: at two speeds, in rows that only grow.

Text is shown steadily while little of it waits, and all at once when much does. The Markdown stream keeps back what may
still change its look: a table until it is complete, a line until it is known whether it starts a code block.
"""

from ostler.rendering.reply_text import NewText, ReplyText
from ostler.rendering.style import Styler
from ostler.rendering.text_sections import LineBreaker, SectionScanner, TextSection
from ostler.text.sanitise import Sanitiser

DRAIN_LENGTH = 600  # more waiting characters than this are shown at once
MIN_STEP = 6  # characters of one frame when calm
CALM_FRAMES = 5  # what waits is spread over this many frames


class LiveMessage:
    """The text and the reasoning of one message so far."""

    def __init__(self, paint: Styler) -> None:
        self.sections: list[TextSection] = []  # complete parts of the text
        self.rows: list[str] = []  # the rows of the text after them; all but the last one are final
        self.restarts = 0  # how often the rows were thrown away
        self._paint = paint
        self._reply = ReplyText()
        self._shown: list[str] = []
        self._waiting: list[str] = []
        self._waiting_length = 0
        self._thought: list[str] = []
        self._start_text()

    @property
    def is_behind(self) -> bool:
        """Whether text waits to be shown."""
        return self._waiting_length > 0

    @property
    def text(self) -> str:
        return "".join((*self._shown, *self._waiting))

    @property
    def thought(self) -> str:
        return "".join(self._thought)

    @property
    def last_thought_line(self) -> str:
        """The line of the reasoning that arrived last, for a status row."""
        return "".join(self._thought[-40:]).rstrip("\n").rpartition("\n")[2]

    def add(self, text: str) -> None:
        self._receive(self._reply.add(text))

    def set(self, text: str, thought: str = "") -> None:
        """Set the whole text so far."""
        self._thought = [thought] if thought else self._thought
        self._receive(self._reply.set(text))

    def add_thought(self, text: str) -> None:
        self._thought.append(text)

    def advance(self) -> bool:
        """Show the next part of the waiting text. Return whether the rows changed."""
        if not self._waiting_length:
            return False
        waiting = "".join(self._waiting)
        step = max(MIN_STEP, self._waiting_length // CALM_FRAMES)
        step = len(waiting) if self._waiting_length > DRAIN_LENGTH else step
        shown, rest = waiting[:step], waiting[step:]
        self._waiting, self._waiting_length = [rest] if rest else [], len(rest)
        self._shown.append(shown)
        self._show(self._breaker.feed(self._sanitiser.feed(shown)))
        return True

    def wrap_again(self) -> None:
        """Wrap the text after the complete sections for the current width."""
        self._start_rows()
        self._print("".join(self._source))

    def _receive(self, new: NewText) -> None:
        if new.replaces:
            self._shown, self._waiting, self._waiting_length = [], [], 0
            self._start_text()
        self._waiting.append(new.text)
        self._waiting_length += len(new.text)

    def _start_text(self) -> None:
        self.sections = []
        self._sanitiser = Sanitiser()
        self._breaker = LineBreaker()
        self._scanner = SectionScanner()
        self._line: list[str] = []  # the start of the line that is being received
        self._start_section()

    def _start_section(self) -> None:
        self._section = TextSection("", self._scanner.fence, is_first=not self.sections)
        self._source: list[str] = []  # the text of the section
        self._start_rows()

    def _start_rows(self) -> None:
        self.rows = []
        self.restarts += 1
        self._stream = self._section.start_stream(self._paint, f"{self._paint('●', 'green')} ")

    def _show(self, text: str) -> None:
        """Print sanitised text, and start a new section after each one that is complete."""
        if not self.sections and not any(self._source):
            text = text.lstrip("\n")  # as in the complete message, which must have the same sections
        *ends, rest = text.split("\n")
        for end in ends:
            line, self._line = "".join((*self._line, end)), []
            if self._scanner.ends_after(line):
                self.sections.append(self._section._replace(text="".join((*self._source, end)), is_last=False))
                self._start_section()
            else:
                self._add(f"{end}\n")
        self._line.append(rest)
        self._add(rest)

    def _add(self, text: str) -> None:
        self._source.append(text)
        self._print(text)

    def _print(self, text: str) -> None:
        printed = self._stream.feed(text)
        if not printed:
            return
        first, *more = printed.split("\n")
        if self.rows:
            self.rows[-1] += first
        else:
            self.rows.append(first)
        self.rows += more
