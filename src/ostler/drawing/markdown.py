"""Markdown as lines for a terminal, line by line as it is said: what was given out is never changed.

Only a table waits for its end, because its columns are as wide as their widest cell. Where colour is off, the text
stays as it was written, which reads well enough and can be copied. In a window, all but code and tables is wrapped
between words.
"""

import re

from ostler.drawing.code import code_line
from ostler.drawing.paint import Paint
from ostler.drawing.wrap import wrapped
from ostler.text.width import width

LONGEST_LINE = 10_000
MOST_ROWS = 200
WIDEST_CELL = 60
RULE = "─" * 40
MARGIN = 2  # what stands before each line of a message
_FENCE = re.compile(r" {0,8}(`{3,}|~{3,})\s*([\w+#.-]*)")
_HEADING = re.compile(r" {0,3}(#{1,6})\s+(.*)")
_ITEM = re.compile(r"(\s*)[-*+]\s+(\[[ xX]\]\s+)?(.*)")
_LEADING = re.compile(r"\s*(?:[-*+•]\s+|\d{1,9}[.)]\s+)?")
_QUOTE = re.compile(r" {0,3}>\s?(.*)")
_BREAK = re.compile(r" {0,3}([-*_])(?:\s*\1){2,}\s*")
_INLINE = re.compile(
    r"`([^`]+)`"
    r"|\*\*([^*]+)\*\*"
    r"|(?<![\w*])\*([^*\s][^*]*)\*(?![\w*])"
    r"|\[([^\]\[]+)\]\(([^()\s]+)\)"
)


class Markdown:
    """One text: feed it whole lines, then ask for what it still holds."""

    def __init__(self, paint: Paint) -> None:
        self._paint = paint
        self._fence = ""
        self._language = ""
        self._table: list[str] = []

    def line(self, line: str) -> list[str]:
        """The lines that this one adds."""
        if not self._fence and self._paint.on and line.lstrip().startswith("|") and len(self._table) < MOST_ROWS:
            self._table.append(line)
            return []
        return [*self.rest(), *self._drawn(line)]

    def rest(self) -> list[str]:
        """The table that has ended."""
        rows, self._table = self._table, []
        return _table(rows, self._paint)

    def _drawn(self, line: str) -> list[str]:
        if len(line) > LONGEST_LINE:
            return [line]
        fence = _FENCE.match(line)
        if self._fence:
            if fence and fence[1].startswith(self._fence) and not fence[2]:
                self._fence = ""
                return [self._paint(line, "dim")]
            return [code_line(line, self._language, self._paint) if self._paint.on else line]
        if fence:
            self._fence, self._language = fence[1], fence[2].lower()
            return [self._paint(line, "dim")]
        columns = self._paint.columns() - MARGIN
        drawn = self._block(line) if self._paint.on else line
        return wrapped(drawn, columns, self._hanging(line)) if columns > 0 else [drawn]

    def _hanging(self, line: str) -> str:
        """What stands before the later rows of a line."""
        if _QUOTE.match(line):
            return self._paint("│ ", "dim") if self._paint.on else "> "
        leading = _LEADING.match(line)
        return " " * len(leading[0]) if leading else ""

    def _block(self, line: str) -> str:
        if heading := _HEADING.fullmatch(line):
            styles = ("bold", "underline") if len(heading[1]) == 1 else ("bold",)
            return self._paint(_bare(heading[2].rstrip().rstrip("#").rstrip()), *styles)
        if _BREAK.fullmatch(line):
            return self._paint(RULE, "dim")
        if quote := _QUOTE.fullmatch(line):
            return self._paint("│ ", "dim") + inline(quote[1], self._paint)
        if item := _ITEM.fullmatch(line):
            return f"{item[1]}{self._paint('•', 'cyan')} {item[2] or ''}{inline(item[3], self._paint)}"
        return inline(line, self._paint)


def markdown_lines(text: str, paint: Paint) -> list[str]:
    """A whole text."""
    markdown = Markdown(paint)
    return [drawn for line in text.split("\n") for drawn in markdown.line(line)] + markdown.rest()


def inline(text: str, paint: Paint) -> str:
    """Code, strong and slanted words, and links; each piece is looked at once."""

    def drawn(found: "re.Match[str]") -> str:
        code, strong, slanted, label, target = found.groups()
        if code:
            return paint(code, "cyan")
        if strong:
            return paint(strong, "bold")
        if slanted:
            return paint(slanted, "italic")
        return paint(label, "underline") + ("" if label == target else paint(f" ({target})", "dim"))

    return _INLINE.sub(drawn, text)


def _bare(text: str) -> str:
    """Without the marks, for where everything stands out already."""
    return _INLINE.sub(lambda found: next(filter(None, found.groups())), text)


def _table(rows: list[str], paint: Paint) -> list[str]:
    """Aligned, if it is one: a head, a divider, and rows that fit a screen."""
    if len(rows) < 2 or not _divides(rows[1]) or len(rows) >= MOST_ROWS:
        return [inline(row, paint) for row in rows]
    cells = [_cells(row) for row in (rows[0], *rows[2:])]
    columns = max(map(len, cells))
    cells = [[*row, *[""] * (columns - len(row))] for row in cells]
    widths = [max(width(_bare(row[column])) for row in cells) for column in range(columns)]
    if max(widths) > WIDEST_CELL:
        return [inline(row, paint) for row in rows]
    divider = paint("─┼─".join("─" * size for size in widths), "dim")
    head, *body = [_row(row, widths, paint, head=number == 0) for number, row in enumerate(cells)]
    return [head, divider, *body]


def _divides(row: str) -> bool:
    return "-" in row and set(row) <= set("|:- \t")


def _cells(row: str) -> list[str]:
    inner = row.strip().removeprefix("|").removesuffix("|")
    return [cell.strip() for cell in inner.split("|")]


def _row(cells: list[str], widths: list[int], paint: Paint, *, head: bool) -> str:
    shown = [paint(_bare(cell), "bold") if head else inline(cell, paint) for cell in cells]
    padded = [text + " " * (size - width(_bare(cell))) for text, cell, size in zip(shown, cells, widths, strict=True)]
    return paint(" │ ", "dim").join(padded).rstrip()
