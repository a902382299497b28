"""A text as lines: the contents, the end each line has, and where each begins."""

import re
from itertools import accumulate

BLANKS = " \t"
_ENDS = re.compile("(\r\n|\n)")
_ALL_ENDS = re.compile("(\r\n|\r|\n)")


class TextLines:
    """The lines of a text; the last one has no end and is empty when the text ends with a line end.

    A lone carriage return is a line end only in a text where `returns` says so: elsewhere it is content.
    """

    __slots__ = ("contents", "ends")

    def __init__(self, text: str, *, cr_is_newline: bool) -> None:
        if "\r" not in text:
            self.contents = text.split("\n")
            self.ends = ["\n"] * (len(self.contents) - 1) + [""]
            return
        pieces = (_ALL_ENDS if cr_is_newline else _ENDS).split(text)
        self.contents, self.ends = pieces[::2], [*pieces[1::2], ""]

    def starts(self) -> list[int]:
        """The offset of each line in the text."""
        sizes = (len(content) + len(end) for content, end in zip(self.contents, self.ends, strict=True))
        return [0, *accumulate(sizes)][:-1]


def has_lone_cr(text: str) -> bool:
    """Whether lines of a text end with lone carriage returns."""
    return text.count("\r") != text.count("\r\n")


def line_number_at(text: str, offset: int) -> int:
    """The number of the line an offset is in, from 1."""
    returns = text.count("\r", 0, offset) - text.count("\r\n", 0, offset)
    return text.count("\n", 0, offset) + returns + 1


def nearest_newline(text: str, offset: int, *, cr_is_newline: bool) -> str:
    """The line end that stands next after a place, else last before it; empty in a text of one line."""
    found = (_ALL_ENDS if cr_is_newline else _ENDS).search(text, offset)
    if found:
        return found.group()
    before = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset) if cr_is_newline else -1)
    if before < 0:
        return ""
    return "\r\n" if text[before - 1 : before + 1] == "\r\n" else text[before]
