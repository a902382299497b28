"""Splits a text into lines, line endings and offsets."""

import re
from itertools import accumulate

BLANKS = " \t"
_ENDS = re.compile("(\r\n|\n)")
_ALL_ENDS = re.compile("(\r\n|\r|\n)")


class TextLines:
    """The lines of a text. The last line has no ending, and is empty if the text ends with a newline.

    A lone CR ends a line only if `cr_is_newline`; otherwise it is content.
    """

    __slots__ = ("contents", "ends")

    def __init__(self, text: str, *, cr_is_newline: bool) -> None:
        if "\r" not in text:
            self.contents = text.split("\n")
            self.ends = ["\n"] * (len(self.contents) - 1) + [""]
            return
        parts = (_ALL_ENDS if cr_is_newline else _ENDS).split(text)
        self.contents, self.ends = parts[::2], [*parts[1::2], ""]

    def starts(self) -> list[int]:
        """Return the offset of each line in the text."""
        sizes = (len(content) + len(end) for content, end in zip(self.contents, self.ends, strict=True))
        return [0, *accumulate(sizes)][:-1]


def has_lone_cr(text: str) -> bool:
    """Return whether a text contains a CR without an LF."""
    return text.count("\r") != text.count("\r\n")


def line_number_at(text: str, offset: int) -> int:
    """Return the number, from 1, of the line at an offset."""
    lone_crs = text.count("\r", 0, offset) - text.count("\r\n", 0, offset)
    return text.count("\n", 0, offset) + lone_crs + 1


def nearest_newline(text: str, offset: int, *, cr_is_newline: bool) -> str:
    """Return the next line ending after an offset, else the last one before it; empty in a text of one line."""
    match = (_ALL_ENDS if cr_is_newline else _ENDS).search(text, offset)
    if match:
        return match.group()
    before = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset) if cr_is_newline else -1)
    if before < 0:
        return ""
    return "\r\n" if text[before - 1 : before + 1] == "\r\n" else text[before]
