"""Renders Markdown for a terminal line by line as it streams; rendered lines never change.

Only a table waits until it is complete, because its columns are as wide as their widest cell. Without colour, the
source text is printed, which is readable and can be copied. Everything except code is wrapped between words.
"""

import re
from typing import NamedTuple

from ostler.rendering.highlight import highlight_line
from ostler.rendering.inline_markup import render_inline, strip_markup
from ostler.rendering.style import Styler
from ostler.rendering.tables import MAX_TABLE_ROWS, render_table
from ostler.rendering.wrapping import wrap

MAX_LINE_LENGTH = 10_000
HORIZONTAL_RULE = "─" * 40
CHECKBOX_WIDTH = len("[x] ")
MARGIN = 2  # columns before each line of a message
_FENCE = re.compile(r" {0,8}(`{3,}|~{3,})\s*([\w+#.-]*)")
_HEADING = re.compile(r" {0,3}(#{1,6})\s+(.*)")
_ITEM = re.compile(r"(\s*)[-*+]\s+(\[[ xX]\]\s+)?(.*)")
_LEADING = re.compile(r"\s*(?:[-*+•]\s+|\d{1,9}[.)]\s+)?")
_QUOTE = re.compile(r" {0,3}>\s?(.*)")
_BREAK = re.compile(r" {0,3}([-*_])(?:\s*\1){2,}\s*")


class CodeFence(NamedTuple):
    """The first line of a code block."""

    marks: str
    language: str


def follow_fence(line: str, fence: CodeFence | None) -> CodeFence | None:
    """Return the code block that is open after a line. `fence` is the one that is open before it."""
    found = _FENCE.match(line) if len(line) <= MAX_LINE_LENGTH else None
    if found is None:
        return fence
    if fence is None:
        return CodeFence(found[1], found[2].lower())
    return None if found[1].startswith(fence.marks) and not found[2] else fence


class MarkdownRenderer:
    """Renders one text. Call `feed_line` with each complete line, then `flush`."""

    def __init__(self, paint: Styler, fence: CodeFence | None = None) -> None:
        """`fence` is the code block that is open before the first line."""
        self._paint = paint
        self._fence = fence
        self._table: list[str] = []

    def feed_line(self, line: str) -> list[str]:
        """Return the rendered lines that this line completes."""
        if (
            not self._fence
            and self._paint.enabled
            and line.lstrip().startswith("|")
            and len(self._table) < MAX_TABLE_ROWS
        ):
            self._table.append(line)
            return []
        return [*self.flush(), *self._render_line(line)]

    @property
    def in_code(self) -> bool:
        """Whether the next line is code."""
        return self._fence is not None

    def flush(self) -> list[str]:
        """Return the rendered lines of a table that was waiting for its end."""
        rows, self._table = self._table, []
        return render_table(rows, self._paint, max(self._paint.columns() - MARGIN, 0))

    def _render_line(self, line: str) -> list[str]:
        if len(line) > MAX_LINE_LENGTH:
            return [line]
        before, self._fence = self._fence, follow_fence(line, self._fence)
        if before != self._fence:
            return [self._paint(line, "dim")]
        if before:
            return [highlight_line(line, before.language, self._paint) if self._paint.enabled else line]
        columns = self._paint.columns() - MARGIN
        rendered = self._render_block(line) if self._paint.enabled else line
        return wrap(rendered, columns, self.hanging_indent(line)) if columns > 0 else [rendered]

    def hanging_indent(self, line: str) -> str:
        """Return the prefix of a wrapped line's continuation rows."""
        if _QUOTE.match(line):
            return self._paint("│ ", "dim") if self._paint.enabled else "> "
        if self._paint.enabled and (item := _ITEM.match(line)) and item[2]:
            return " " * (len(item[1]) + CHECKBOX_WIDTH)
        leading = _LEADING.match(line)
        return " " * len(leading[0]) if leading else ""

    def render_line_prefix(self, line: str) -> tuple[str, int]:
        """Return the rendered mark of a quote or list item, and the length of its source; empty for other lines."""
        if not self._paint.enabled:
            return "", 0
        if quote := _QUOTE.match(line):
            return self._paint("│ ", "dim"), quote.start(1)
        if item := _ITEM.match(line):
            return f"{item[1]}{self._item_mark(item[2])} ", item.start(3)
        return "", 0

    def _item_mark(self, checkbox: str | None) -> str:
        if not checkbox:
            return self._paint("•", "cyan")
        return self._paint("[ ]", "cyan") if checkbox[1] == " " else self._paint("[x]", "green")

    def _render_block(self, line: str) -> str:
        if heading := _HEADING.fullmatch(line):
            styles = ("bold", "underline") if len(heading[1]) == 1 else ("bold",)
            return self._paint(strip_markup(heading[2].rstrip().rstrip("#").rstrip()), *styles)
        if _BREAK.fullmatch(line):
            return self._paint(HORIZONTAL_RULE, "dim")
        prefix, length = self.render_line_prefix(line)
        return prefix + render_inline(line[length:], self._paint)


def render_markdown(text: str, paint: Styler) -> list[str]:
    """Render a complete text."""
    markdown = MarkdownRenderer(paint)
    return [row for line in text.split("\n") for row in markdown.feed_line(line)] + markdown.flush()
