"""Renders a message word by word as it streams; printed text never changes.

Words of paragraphs, lists and quotes are printed as they arrive. Headings, code and tables are printed by line, because
their look depends on the whole line. Without colour and columns (in a pipe), every character is printed at once.
"""

import re

from ostler.rendering.inline_stream import InlineStream
from ostler.rendering.markdown import MARGIN, CodeFence, MarkdownRenderer
from ostler.rendering.style import Styler
from ostler.rendering.wrapping import RowStream

MAX_UNDECIDED = 200
# The start of a line that may still become a rule, a list item, a fence, a heading or a quote.
_UNDECIDED = re.compile(
    r"\s*(?:[-*+]\s+\[(?:[ xX](?:\]\s*)?)?|[-*_][-*_\s]*|\+\s*|\d{1,9}(?:[.)]\s*)?|`{1,2}|~{1,2}|#{1,6}|>\s?)?"
)
_BY_LINE = re.compile(r"\s*(?:\||`{3}|~{3})| {0,3}#{1,6}\s")


class MarkdownStream:
    """Renders one message. Call `feed` with sanitised text, then `finish`; print what they return unchanged."""

    def __init__(
        self,
        paint: Styler,
        first_margin: str,
        margin: str = " " * MARGIN,
        *,
        continues: bool = False,
        fence: CodeFence | None = None,
    ) -> None:
        """`first_margin` starts the first row and `margin` every other row; both have the same width.

        With `continues`, the text continues a message, in which the code block `fence` may be open.
        """
        self.is_mid_row = False
        self._paint = paint
        self._first_margin = margin if continues else first_margin
        self._margin = margin
        self._has_output = continues
        self._blank_lines = 0  # printed only if text follows
        self._markdown = MarkdownRenderer(paint, fence)
        self._line_start = ""  # the start of the line, until it is known how to print it
        self._whole_line: list[str] = []  # a line that is printed as a whole
        self._inline = InlineStream(paint)
        self._row: RowStream | None = None  # a line that is printed word by word

    def feed(self, text: str) -> str:
        """Return what can be printed now."""
        first, *more = text.split("\n")
        out = [self._add(first)]
        for piece in more:
            out += [self._end_line(), self._add(piece)]
        return "".join(out)

    def finish(self) -> str:
        """Return the rest of the message; the output then ends with a newline, if there is any."""
        rest = self._end_line() if self._row or self._line_start or self._whole_line else ""
        return rest + self._print_rows(self._markdown.flush())

    def break_row(self) -> str:
        """End the current row, so that other lines can be printed; the message continues below them."""
        newline, self.is_mid_row = "\n" if self.is_mid_row else "", False
        if self._row:
            self._row.continue_on_new_row()
        return newline

    def _add(self, text: str) -> str:
        if self._row:
            return self._print(self._row.feed(self._inline.feed(text)))
        if self._whole_line:
            self._whole_line.append(text)
            return ""
        self._line_start += text
        if not self._line_start.strip() or self._is_undecided():
            return ""
        source, self._line_start = self._line_start, ""
        if self._is_by_line(source):
            self._whole_line.append(source)
            return ""
        return self._start_row(source)

    def _is_undecided(self) -> bool:
        length = len(self._line_start)
        return length <= MAX_UNDECIDED and not self._is_plain and bool(_UNDECIDED.fullmatch(self._line_start))

    def _is_by_line(self, source: str) -> bool:
        return not self._is_plain and (self._markdown.in_code or bool(_BY_LINE.match(source)))

    @property
    def _is_plain(self) -> bool:
        return not self._paint.enabled and self._paint.columns() <= 0

    def _start_row(self, source: str) -> str:
        """Start to print a line word by word, below the table before it."""
        table = self._print_rows(self._markdown.flush())
        columns = max(self._paint.columns() - len(self._margin), 0)
        self._row = RowStream(columns, self._margin, self._markdown.hanging_indent(source))
        prefix, length = self._markdown.render_line_prefix(source)
        self._inline = InlineStream(self._paint, source[:length])
        return table + self._print(self._row.feed(prefix + self._inline.feed(source[length:])))

    def _end_line(self) -> str:
        if self._row is None:
            source = "".join((*self._whole_line, self._line_start))
            self._whole_line, self._line_start = [], ""
            return self._print_rows(self._markdown.feed_line(source))
        row, self._row = self._row, None
        rest = self._print(row.feed(self._inline.finish()) + row.finish())
        newline, self.is_mid_row = "\n" if self.is_mid_row else "", False
        return rest + newline

    def _print_rows(self, rows: list[str]) -> str:
        out = []
        for row in rows:
            if row.strip():
                out.append(self._print(row.rstrip()) + "\n")
                self.is_mid_row = False
            else:
                self._blank_lines += self._has_output
        return "".join(out)

    def _print(self, text: str) -> str:
        """Return the text; at the start of a row, below the blank lines and after the margin."""
        if not text:
            return ""
        start = "" if self.is_mid_row else "\n" * self._blank_lines + self._first_margin
        self.is_mid_row = self._has_output = True
        self._first_margin, self._blank_lines = self._margin, 0
        return start + text
