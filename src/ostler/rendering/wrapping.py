"""Wraps styled lines between words."""

import re
from collections.abc import Iterator

from ostler.rendering.measure import count_columns
from ostler.text.width import width

MIN_COLUMNS = 8
TOKEN = re.compile(r"(?P<colour>(?:\x1b\[[\d;]*m)+)|(?P<gap> +)|(?P<word>[^ \x1b]+|\x1b)")
_LEADING_COLUMN = re.compile(r"\s*(?:[!✗·]\s+)?(?:\S+(?: \S+)*\s{2,})?")
_MAX_HANGING_WIDTH = 40
RESET = "\x1b[0m"
_CLOSING_PUNCTUATION = frozenset("，。、；：？！）】》」』”’…")  # no row starts with one of these


def wrap(line: str, columns: int, hanging_indent: str = "") -> list[str]:
    """Wrap a line into rows of at most `columns`; continuation rows start with `hanging_indent` and keep the style.

    A word that is longer than a row is not split, so that it can be copied.
    """
    if len(line) <= columns // 2 or "\t" in line or columns - count_columns(hanging_indent) < MIN_COLUMNS:
        return [line]
    rows = _RowBuilder(columns, hanging_indent)
    for token in TOKEN.finditer(line):
        if token.lastgroup == "word":
            for part in split_word(token[0]):
                rows.add_word(part)
        else:
            rows.add_separator(token[0], is_space=token.lastgroup == "gap")
    return rows.finish()


def wrap_notice(text: str, columns: int) -> list[str]:
    """Wrap the lines of a notice. Continuation rows are indented to the text, in a list to its last column."""
    if columns <= 0:
        return text.split("\n")
    return [row for line in text.split("\n") for row in wrap(line, columns, _hanging_indent(line))]


def _hanging_indent(line: str) -> str:
    match = _LEADING_COLUMN.match(line)
    return " " * min(count_columns(match[0]) if match else 0, _MAX_HANGING_WIDTH)


def split_word(word: str) -> Iterator[str]:
    """Yield the parts of a word that may be on different rows; scripts with wide letters have no spaces."""
    if word.isascii() or width(word) == len(word):
        yield word
        return
    from wcwidth import iter_graphemes

    part, part_is_narrow = "", True
    for letter in iter_graphemes(word):
        is_narrow = width(letter) < 2
        if part and not (is_narrow and part_is_narrow) and letter not in _CLOSING_PUNCTUATION:
            yield part
            part = ""
        part, part_is_narrow = part + letter, is_narrow
    yield part


class _RowBuilder:
    """The finished rows, the current row, and the spaces and styles before its next word."""

    def __init__(self, columns: int, hanging_indent: str) -> None:
        self._columns = columns
        self._hanging_indent, self._indent_width = hanging_indent, count_columns(hanging_indent)
        self._rows: list[str] = []
        self._row: list[str] = []
        self._used_columns = 0
        self._style = ""
        self._separators: list[str] = []
        self._gap_width = 0

    def add_separator(self, text: str, *, is_space: bool) -> None:
        """Add spaces, or the start or end of a style."""
        self._separators.append(text)
        self._gap_width += len(text) if is_space else 0

    def add_word(self, word: str) -> None:
        word_width, start = width(word), self._used_columns + self._gap_width
        if start and start + word_width > self._columns >= self._indent_width + word_width:
            self._start_row()
        self._row += [*self._separators, word]
        for code in self._separators:
            if code.startswith("\x1b"):
                self._style = "" if code.endswith(RESET) else code
        self._used_columns += self._gap_width + word_width
        if self._used_columns > self._columns:  # the terminal itself wraps a long word
            self._used_columns %= self._columns
        self._separators, self._gap_width = [], 0

    def finish(self) -> list[str]:
        return [*self._rows, "".join((*self._row, *self._separators))]

    def _start_row(self) -> None:
        """Start the next row; a row of spaces only is dropped."""
        if self._row:
            self._rows.append("".join(self._row) + (RESET if self._style else ""))
            self._row = [self._hanging_indent, self._style]
            self._used_columns = self._indent_width
        self._separators = [code for code in self._separators if code.startswith("\x1b")]
        self._gap_width = 0
