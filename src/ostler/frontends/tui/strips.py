"""Converts styled lines of the rendering package to strips of Textual.

The lines hold only escape codes of `Styler`; everything else is text and is never interpreted as markup.
"""

import re
from collections.abc import Iterator, Mapping

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from ostler.rendering.style import SCREEN_CODES, Styler
from ostler.text.width import width

PAINT = Styler(True, "screen")
_CODE = re.compile(r"\x1b\[([\d;]*)m")
TAB = "    "
STYLE_NAMES = {code: name for name, code in SCREEN_CODES.items()}
DIFF_STYLES = ("added_line", "removed_line", "added", "removed")


class StripMaker:
    """Makes strips with the colours of one theme."""

    def __init__(self, base: Style, palette: Mapping[str, Style]) -> None:
        """`base` is the style of plain text, `palette` has the other styles by the names of `Styler`."""
        self.base = base
        self._palette = palette
        self._styles: dict[str, Style] = {"0": base, "": base}
        self._fills: dict[Style, Style] = {}  # styles of changed lines, and the style of the rest of their row
        for name in DIFF_STYLES:
            code = SCREEN_CODES[name]
            self._styles[code] = self.style(name)
            self._fills[self._styles[code]] = self.style("added_line" if "32" in code else "removed_line")

    def style(self, name: str) -> Style:
        return self.base + self._palette.get(name, Style())

    def make(self, line: str, columns: int) -> list[Strip]:
        """Return the line in strips of at most `columns`; usually one. Changed lines of a diff fill their row."""
        segments = list(self._segments(line))
        length = sum(segment.cell_length for segment in segments)
        if length <= columns or columns <= 0:
            return [self._filled(Strip(segments, length), columns)]
        return [self._filled(strip, columns) for strip in _fold(segments, columns)]

    def _filled(self, strip: Strip, columns: int) -> Strip:
        last = strip._segments[-1].style if strip._segments else None
        fill = self._fills.get(last) if last and strip.cell_length < columns else None
        return strip.extend_cell_length(columns, fill) if fill else strip

    def tinted(self, name: str) -> "StripMaker":
        """Return a maker whose plain text has the style of this name."""
        return StripMaker(self.style(name), self._palette)

    def _segments(self, line: str) -> Iterator[Segment]:
        text, *rest = _CODE.split(line.replace("\t", TAB) if "\t" in line else line)
        if text:
            yield Segment(text, self.base)
        for code, styled in zip(rest[::2], rest[1::2], strict=True):
            if styled:
                yield Segment(styled, self._style_of(code))

    def _style_of(self, code: str) -> Style:
        style = self._styles.get(code)
        if style is None:
            style = self.base
            for part in code.split(";"):
                style += self._palette.get(STYLE_NAMES.get(part, ""), Style())
            self._styles[code] = style
        return style


def _fold(segments: list[Segment], columns: int) -> Iterator[Strip]:
    """Break a line at the width of the window, never inside a wide character."""
    row: list[Segment] = []
    used = 0
    for text, style, _ in segments:
        start = 0
        while start < len(text):
            part, part_width = _take(text, start, columns - used)
            if part:
                row.append(Segment(part, style))
                used += part_width
                start += len(part)
            if start < len(text):
                yield Strip(row, used)
                row, used = [], 0
    if row:
        yield Strip(row, used)


def _take(text: str, start: int, columns: int) -> tuple[str, int]:
    """Return the part of a text that fits, and its width; at least one character of a new row."""
    part = text[start : start + columns]
    if part.isascii():
        return part, len(part)
    used = 0
    for position in range(start, len(text)):
        step = width(text[position])
        if used + step > columns and (position > start or columns >= 2):
            return text[start:position], used
        used += step
    return text[start:], used
