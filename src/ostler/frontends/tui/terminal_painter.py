"""Writes to the terminal only what changed: it knows what each row shows, and moves rows instead of drawing them again.

Textual draws every row of a changed region in full. While text streams, this is more than fifty times the text, which
a slow connection cannot carry.
"""

import os
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from rich.cells import cell_len
from rich.color import ColorSystem
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

MIN_ERASED = 8  # fewer spaces are written as they are
ERASE_WITH_COLOUR = (
    "xterm",
    "tmux",
    "rxvt",
    "linux",
    "alacritty",
    "foot",
    "konsole",
    "vte",
    "putty",
    "iterm",
    "wezterm",
)
PLAIN = Style()
ERASE = "\x1b[K"  # to the end of the row
ERASE_ROW = "\x1b[2K"
_DISPUTED = re.compile("[\u200d\ufe0e\ufe0f\U0001f1e6-\U0001f1ff\U0001f3fb-\U0001f3ff]")
"""Terminals disagree about the width of text with these, so that nobody knows which cells it leaves."""
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""What the terminal would interpret. The transcript has none, but texts of inputs may, such as pasted ones."""
MIN_MOVED = 3  # rows; moving fewer is not worth the bytes


class Piece(NamedTuple):
    """A part of a row that Textual wants to draw."""

    x: int
    y: int
    strip: Strip


class TerminalPainter:
    """Remembers the rows of the terminal. `erases_with_colour`: erased cells have the current background colour."""

    def __init__(self, *, erases_with_colour: bool) -> None:
        self._erases_with_colour = erases_with_colour
        self._size = (0, 0)
        self._rows: list[Strip | None] = []  # None: not known

    def forget(self) -> None:
        """Draw everything again: the terminal may show something else."""
        self._size = (0, 0)

    def paint(
        self, pieces: Iterable[Piece], size: tuple[int, int], colours: ColorSystem | None, *, is_whole: bool
    ) -> str:
        """Return what to write so that the terminal shows the pieces.

        `size` is its columns and rows. Without `colours`, only bold, underlined and similar text differs. If the pieces
        are the whole screen, nothing is assumed about what the terminal shows.
        """
        if size != self._size or is_whole:
            self._size, self._rows = size, [None] * size[1]
        columns, out, target = size[0], [], list(self._rows)
        for piece in pieces:
            if not 0 <= piece.y < size[1]:
                continue
            merged = _merge(target[piece.y], piece, columns)
            if merged is None:
                out.append(_move_to(piece.x, piece.y) + _render(piece.strip, colours))
            target[piece.y] = merged
        out.append(self._move_rows(target))
        for y, (shown, row) in enumerate(zip(self._rows, target, strict=True)):
            if row is not None and row is not shown:
                out.append(self._draw(y, shown, row, colours))
        self._rows = target
        return "".join(out)

    def _move_rows(self, target: list[Strip | None]) -> str:
        """Scroll a part of the screen, if many rows moved by the same distance."""
        changed = [y for y, row in enumerate(target) if row is not self._rows[y] and row != self._rows[y]]
        shift, moved = _find_shift(self._rows, target, changed)
        if len(moved) < MIN_MOVED or len(moved) <= len(changed) // 2:
            return ""
        top, bottom = _moved_area(moved, changed, shift)
        part = self._rows[top : bottom + 1]
        blank: list[Strip | None] = [None] * abs(shift)
        self._rows[top : bottom + 1] = [*part[shift:], *blank] if shift > 0 else [*blank, *part[:shift]]
        scroll = f"\x1b[{bottom + 1};1H" + "\n" * shift if shift > 0 else f"\x1b[{top + 1};1H" + "\x1bM" * -shift
        return f"\x1b[{top + 1};{bottom + 1}r{scroll}\x1b[r"

    def _draw(self, y: int, shown: Strip | None, row: Strip, colours: ColorSystem | None) -> str:
        columns = self._size[0]
        left, right = changed_columns(shown, row) if shown is not None else (0, columns)
        if left >= right:
            return ""
        if _DISPUTED.search(row.text) or (shown is not None and _DISPUTED.search(shown.text)):
            return f"{_move_to(0, y)}{ERASE_ROW}{_render(row, colours)}"
        part = row.crop(left, right)
        erased = self._erased_columns(part) if right == columns else 0
        runs = _runs(part.crop(0, part.cell_length - erased))
        if erased:
            background = next(segment.style for segment in reversed(list(part)) if segment.text) or PLAIN
            _add_run(runs, ERASE, Style(bgcolor=background.bgcolor))
        return _move_to(left, y) + _render_runs(runs, colours)

    def _erased_columns(self, part: Strip) -> int:
        """Return the number of columns at the end that can be erased instead of written."""
        count, background = 0, None
        for text, style, _ in reversed(list(part)):
            style = style or PLAIN
            if not text:
                continue
            if count and style.bgcolor != background:
                break
            if not _hides_spaces(style):
                break
            background = style.bgcolor
            stripped = text.rstrip(" ")
            count += len(text) - len(stripped)
            if stripped:
                break
        may_erase = self._erases_with_colour or background is None or background.is_default
        return count if count >= MIN_ERASED and may_erase else 0


def erases_with_colour(env: Mapping[str, str] = os.environ) -> bool:
    """Return whether the terminal erases with the current background colour; terminfo is wrong about tmux."""
    return env.get("TERM", "").startswith(ERASE_WITH_COLOUR)


def _merge(row: Strip | None, piece: Piece, columns: int) -> Strip | None:
    """Return the row with the piece in it, or None if the rest of the row is not known."""
    x, length = piece.x, piece.strip.cell_length
    if x == 0 and length == columns:
        return piece.strip
    if row is None or x + length > columns:
        return None
    return Strip.join([row.crop(0, x), piece.strip, row.crop(x + length, columns)])


def _find_shift(old: list[Strip | None], new: list[Strip | None], changed: list[int]) -> tuple[int, list[int]]:
    """Return by how many rows most of the changed rows moved up, and the rows that did."""
    places: dict[tuple[Segment, ...], list[int]] = {}
    for y in changed:
        if (strip := old[y]) is not None and strip.text.strip():
            places.setdefault(tuple(strip), []).append(y)
    shifts: dict[int, list[int]] = {}
    for y in changed if places else ():
        strip = new[y]
        for place in places.get(tuple(strip), ()) if strip is not None else ():
            if place != y:
                shifts.setdefault(place - y, []).append(y)
    return max(shifts.items(), key=lambda item: len(item[1]), default=(0, []))


def _moved_area(moved: list[int], changed: list[int], shift: int) -> tuple[int, int]:
    """Return the first and the last row of the part to scroll.

    Rows that change next to it belong to it: a row that grows moves too, and only its new text has to be written.
    """
    top, bottom = min(*moved, moved[0] + shift), max(*moved, moved[-1] + shift)
    reach = {*changed, *(y - 1 for y in changed), *(y + 1 for y in changed)}
    for _ in range(abs(shift)):
        if shift > 0 and bottom + 1 in reach and bottom < changed[-1]:
            bottom += 1
        elif shift < 0 and top - 1 in reach and top > changed[0]:
            top -= 1
    return top, bottom


def changed_columns(old: Strip, new: Strip) -> tuple[int, int]:
    """Return the first column that differs and the one after the last; both rows have the same width."""
    left = _common_columns(list(old), list(new), 1)
    if left >= new.cell_length:
        return left, left
    return left, max(new.cell_length - _common_columns(list(old)[::-1], list(new)[::-1], -1), left)


def _common_columns(old: list[Segment], new: list[Segment], step: int) -> int:
    """Return how many columns are the same, from the start, or with `step` -1 from the end."""
    columns = 0
    for before, after in zip(old, new, strict=False):
        if before == after:
            columns += after.cell_length
            continue
        if before.style == after.style and before.text.isascii() and after.text.isascii():
            columns += _common_length(before.text[::step], after.text[::step])
        break
    return columns


def _common_length(first: str, second: str) -> int:
    for number, (a, b) in enumerate(zip(first, second, strict=False)):
        if a != b:
            return number
    return min(len(first), len(second))


def _move_to(x: int, y: int) -> str:
    return f"\x1b[{y + 1};{x + 1}H"


def _render(strip: Strip, colours: ColorSystem | None) -> str:
    return _render_runs(_runs(strip), colours)


def _runs(strip: Strip) -> list[tuple[str, Style]]:
    """Return the texts of a strip with their styles, as few as possible: the colour of a space is not visible."""
    runs: list[tuple[str, Style]] = []
    for text, style, control in strip:
        if text and not control:
            shown = text if text.isprintable() else _CONTROLS.sub(lambda match: " " * cell_len(match[0]), text)
            _add_run(runs, shown, style or PLAIN)
    return runs


def _add_run(runs: list[tuple[str, Style]], text: str, style: Style) -> None:
    last_text, last_style = runs[-1] if runs else ("", style)
    if last_style == style or (_is_blank(text) and _can_share(last_style, style)):
        runs[-1:] = [(last_text + text, last_style)]
    elif _is_blank(last_text) and _can_share(last_style, style):
        runs[-1:] = [(last_text + text, style)]
    else:
        runs.append((text, style))


def _is_blank(text: str) -> bool:
    return text == ERASE or not text.strip(" ")


def _can_share(first: Style, second: Style) -> bool:
    """Return whether spaces look the same in both styles."""
    return first.bgcolor == second.bgcolor and _hides_spaces(first) and _hides_spaces(second)


def _hides_spaces(style: Style) -> bool:
    """Return whether only the background of a space is visible."""
    return not (style.underline or style.underline2 or style.reverse or style.strike or style.overline or style.link)


def _render_runs(runs: list[tuple[str, Style]], colours: ColorSystem | None) -> str:
    return "".join(_render_text(text, style, colours) for text, style in runs)


def _render_text(text: str, style: Style, colours: ColorSystem | None) -> str:
    if colours is None:
        return style.without_color.render(text, color_system=ColorSystem.STANDARD)
    return style.render(text, color_system=colours)
