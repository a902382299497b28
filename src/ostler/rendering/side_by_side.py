"""Renders a unified diff in two columns: the old text on the left, the new text on the right."""

from collections.abc import Iterator
from itertools import zip_longest

from ostler.rendering.diffs import group_changes
from ostler.rendering.style import Styler
from ostler.text.sanitise import escape_invisible
from ostler.text.width import width

MIN_COLUMNS = 60
DIVIDER = " │ "


def render_side_by_side(diff: str, paint: Styler, columns: int) -> list[str]:
    """Render a diff; nothing is cut off, long lines continue on the next row of their column."""
    half = (columns - len(DIVIDER)) // 2
    lines = diff.removesuffix("\n").split("\n")
    lines = lines[2:] if lines[:1] and lines[0].startswith("--- ") else lines
    return [row for group in group_changes(lines) for row in _render_group(group, paint, half)]


def _render_group(group: list[str], paint: Styler, half: int) -> Iterator[str]:
    first = group[0]
    if first.startswith("@"):
        yield paint(escape_invisible(first), "cyan")
        return
    if not first.startswith(("-", "+")):
        pairs: list[tuple[str, str]] = [(first, first)]
    else:
        removed = [line for line in group if line.startswith("-")]
        added = [line for line in group if line.startswith("+")]
        pairs = list(zip_longest(removed, added, fillvalue=""))
    for old, new in pairs:
        yield from _render_pair(old, new, paint, half)


def _render_pair(old: str, new: str, paint: Styler, half: int) -> Iterator[str]:
    for left, right in zip_longest(_fold(old, half), _fold(new, half), fillvalue=""):
        left += " " * (half - width(left))
        yield f"{_paint_side(left, old, paint)}{paint(DIVIDER, 'dim')}{_paint_side(right, new, paint)}"


def _paint_side(text: str, line: str, paint: Styler) -> str:
    style = {"-": "removed_line", "+": "added_line"}.get(line[:1])
    return paint(text, style) if style else text


def _fold(line: str, columns: int) -> list[str]:
    """Split a line into parts of at most `columns`."""
    text = escape_invisible(line.replace("\t", "    "))
    if text.isascii():
        return [text[start : start + columns] for start in range(0, max(len(text), 1), columns)]
    parts, part, used = [], "", 0
    for letter in text:
        size = width(letter)
        if used + size > columns:
            parts.append(part)
            part, used = "", 0
        part, used = part + letter, used + size
    return [*parts, part]
