"""Splits a long text of the model into sections that can be rendered by themselves.

A screen renders only the sections that are visible. Lines of Markdown are rendered one by one, so that a section needs
to know only whether it starts inside a code block. A table is not split.
"""

from typing import NamedTuple

from ostler.rendering.markdown import CodeFence, follow_fence
from ostler.rendering.markdown_stream import MarkdownStream
from ostler.rendering.style import Styler

SECTION_LINES = 60
SECTION_LENGTH = 8_000  # characters, because lines can be long
MAX_LINE = 4_000  # characters; a longer line is broken, because it takes many rows anyway


class TextSection(NamedTuple):
    """Some lines of a text, sanitised. `fence` is the code block that is open before them."""

    text: str
    fence: CodeFence | None = None
    is_first: bool = True
    is_last: bool = True

    def start_stream(self, paint: Styler, bullet: str) -> MarkdownStream:
        """Return the stream that renders it. `bullet` starts the first row of the text."""
        return MarkdownStream(paint, bullet, continues=not self.is_first, fence=self.fence)

    def render(self, paint: Styler, bullet: str) -> list[str]:
        """Return its rows."""
        stream = self.start_stream(paint, bullet)
        printed = stream.feed(self.text) + stream.finish()
        return printed.removesuffix("\n").split("\n") if printed else []


class LineBreaker:
    """Breaks lines that are too long to be one part of a section."""

    def __init__(self) -> None:
        self._length = 0  # of the current line

    def feed(self, text: str) -> str:
        """Return the next text with additional newlines."""
        if self._length + len(text) <= MAX_LINE and "\n" not in text:
            self._length += len(text)
            return text
        return "\n".join(self._break(line, is_new=number > 0) for number, line in enumerate(text.split("\n")))

    def _break(self, line: str, *, is_new: bool) -> str:
        used = 0 if is_new else self._length
        if used + len(line) <= MAX_LINE:
            self._length = used + len(line)
            return line
        first, parts = line[: MAX_LINE - used], range(MAX_LINE - used, len(line), MAX_LINE)
        rest = [line[start : start + MAX_LINE] for start in parts]
        self._length = len(rest[-1])
        return "\n".join((first, *rest))


class SectionScanner:
    """Reads the lines of a text and finds the ends of sections."""

    def __init__(self) -> None:
        self.fence: CodeFence | None = None  # the open code block
        self._lines = self._length = 0

    def ends_after(self, line: str) -> bool:
        """Add a complete line. Return whether a section ends after it."""
        self.fence = follow_fence(line, self.fence)
        self._lines += 1
        self._length += len(line)
        is_long = self._lines >= SECTION_LINES or self._length >= SECTION_LENGTH
        in_table = self.fence is None and line.lstrip().startswith("|")
        if not is_long or in_table or not line.strip():
            return False
        self._lines = self._length = 0
        return True


def split_text(text: str) -> list[TextSection]:
    """Return the sections of a sanitised text; at least one."""
    text = LineBreaker().feed(text)
    scanner, sections, fence = SectionScanner(), list[TextSection](), None
    start = position = 0
    while (end := text.find("\n", position)) >= 0:
        if scanner.ends_after(text[position:end]):
            sections.append(TextSection(text[start:end], fence, is_first=not sections, is_last=end + 1 >= len(text)))
            start, fence = end + 1, scanner.fence
        position = end + 1
    if start < len(text) or not sections:
        sections.append(TextSection(text[start:], fence, is_first=not sections))
    return sections
