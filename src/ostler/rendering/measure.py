"""How much room drawn lines take on a screen: their columns without colours, and the rows they are wrapped into."""

import re
from collections.abc import Sequence

from ostler.text.width import width

_COLOUR = re.compile(r"\x1b\[[\d;]*m")


def count_columns(line: str) -> int:
    """The columns of a line that may be in colour."""
    return width(_COLOUR.sub("", line) if "\x1b" in line else line)


def count_rows(line: str, columns: int) -> int:
    """The rows a terminal of so many columns makes of a line."""
    return max(1, -(-count_columns(line) // max(columns, 1)))


def lines_that_fit(lines: Sequence[str], columns: int, rows: int) -> int:
    """How many of the lines fit; at least one."""
    used = 0
    for number, line in enumerate(lines):
        used += count_rows(line, columns)
        if used > rows:
            return max(number, 1)
    return len(lines)
