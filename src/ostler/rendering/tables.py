"""Renders Markdown tables: aligned, with cells wrapped to the window, or cell by cell if the window is too narrow."""

from collections.abc import Iterator, Sequence

from ostler.rendering.inline_markup import render_inline, strip_markup
from ostler.rendering.measure import count_columns, plain_text
from ostler.rendering.style import Styler
from ostler.rendering.wrapping import MIN_COLUMNS, split_word, wrap
from ostler.text.width import width

MAX_TABLE_ROWS = 200
MAX_TABLE_COLUMNS = 50
MAX_CELL_WIDTH = 60  # in a table that is not wrapped
DIVIDER_WIDTH = 40
_GAP = 3  # columns between two cells


def render_table(lines: Sequence[str], paint: Styler, columns: int) -> list[str]:
    """Render lines that start with `|` in at most `columns` (0: any number).

    Lines without a divider, and tables that are too large, are rendered as text.
    """
    if len(lines) < 2 or not _is_divider(lines[1]) or len(lines) >= MAX_TABLE_ROWS:
        return [render_inline(line, paint) for line in lines]
    source = [_split_cells(line) for line in (lines[0], *lines[2:])]
    count = max(map(len, source))
    if count > MAX_TABLE_COLUMNS:
        return [render_inline(line, paint) for line in lines]
    head = [paint(strip_markup(cell), "bold") for cell in source[0]]
    body = [[render_inline(cell, paint) for cell in row] for row in source[1:]]
    cells = [[*row, *[""] * (count - len(row))] for row in (head, *body)]
    widths = _fitting_widths(cells, columns)
    if widths is None:
        return list(_render_cell_by_cell(cells, paint, columns))
    if columns <= 0 and max(widths) > MAX_CELL_WIDTH:
        return [render_inline(line, paint) for line in lines]
    divider = paint("─┼─".join("─" * size for size in widths), "dim")
    first, *rest = [list(_render_row(row, widths, paint)) for row in cells]
    return [*first, divider, *(line for row in rest for line in row)]


def _is_divider(row: str) -> bool:
    return "-" in row and set(row) <= set("|:- \t")


def _split_cells(row: str) -> list[str]:
    inner = row.replace("\t", " ").strip().removeprefix("|").removesuffix("|")
    return [cell.strip() for cell in inner.split("|")]


def _fitting_widths(cells: list[list[str]], columns: int) -> list[int] | None:
    """Return the widths of the columns. None if the table does not fit without splitting words."""
    wanted = [max(map(count_columns, column)) for column in zip(*cells, strict=True)]
    room = columns - _GAP * (len(wanted) - 1)
    if columns <= 0 or sum(wanted) <= room:
        return wanted
    longest = [max(map(_longest_word, column)) for column in zip(*cells, strict=True)]
    least = [min(size, max(word, MIN_COLUMNS)) for size, word in zip(wanted, longest, strict=True)]
    for limit in range(room, 0, -1):
        widths = [max(min(size, limit), minimum) for size, minimum in zip(wanted, least, strict=True)]
        if sum(widths) <= room:
            return widths
    return None


def _longest_word(cell: str) -> int:
    return max((width(part) for word in plain_text(cell).split() for part in split_word(word)), default=0)


def _render_row(cells: Sequence[str], widths: Sequence[int], paint: Styler) -> Iterator[str]:
    wrapped = [wrap(cell, size) for cell, size in zip(cells, widths, strict=True)]
    for number in range(max(map(len, wrapped))):
        shown = [lines[number] if number < len(lines) else "" for lines in wrapped]
        padded = [text + " " * (size - count_columns(text)) for text, size in zip(shown, widths, strict=True)]
        yield paint(" │ ", "dim").join(padded).rstrip()


def _render_cell_by_cell(cells: list[list[str]], paint: Styler, columns: int) -> Iterator[str]:
    """Yield each cell in a line of its own, after the heading of its column."""
    head, *body = cells
    for number, row in enumerate(body):
        if number:
            yield paint("─" * min(columns, DIVIDER_WIDTH), "dim")
        for name, cell in zip(head, row, strict=True):
            if cell:
                yield from wrap(f"{name}: {cell}" if name else cell, columns, "  ")
