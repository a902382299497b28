"""Measures styled lines: their columns without styles, and the terminal rows they take."""

import re
from collections.abc import Sequence

from ostler.text.width import width

_COLOUR = re.compile(r"\x1b\[[\d;]*m")


def plain_text(line: str) -> str:
    """Return a styled line without its styles."""
    return _COLOUR.sub("", line)


def count_columns(line: str) -> int:
    """Return the columns of a line, ignoring its styles."""
    return width(_COLOUR.sub("", line) if "\x1b" in line else line)


def count_rows(line: str, columns: int) -> int:
    """Return the rows that a line takes in a terminal of this width."""
    return max(1, -(-count_columns(line) // max(columns, 1)))


def lines_that_fit(lines: Sequence[str], columns: int, rows: int) -> int:
    """Return how many of the lines fit; at least one."""
    used = 0
    for index, line in enumerate(lines):
        used += count_rows(line, columns)
        if used > rows:
            return max(index, 1)
    return len(lines)
