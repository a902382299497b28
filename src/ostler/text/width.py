"""Measures text in terminal columns and clips it."""

from collections.abc import Callable
from functools import cache


def width(text: str) -> int:
    """Return the number of columns of one line of text; control characters have no width."""
    if text.isascii() and text.isprintable():
        return len(text)
    measure_line, measure_char = _wcwidth_functions()
    columns = measure_line(text)
    return columns if columns >= 0 else sum(max(measure_char(char), 0) for char in text)


@cache
def _wcwidth_functions() -> tuple[Callable[[str], int], Callable[[str], int]]:
    from wcwidth import wcswidth, wcwidth

    return wcswidth, wcwidth


def clip(text: str, columns: int) -> str:
    """Clip a text to a number of columns, at a character border, and append an ellipsis if it was clipped."""
    if width(text) <= columns:
        return text
    room = columns - 1
    if room < 0:
        return ""
    if text.isascii() and text.isprintable():
        return text[:room] + "…"
    return _take_columns(text, room) + "…"


def _take_columns(text: str, columns: int) -> str:
    from wcwidth import iter_graphemes

    end = 0
    for grapheme in iter_graphemes(text):
        columns -= width(grapheme)
        if columns < 0:
            break
        end += len(grapheme)
    return text[:end]
