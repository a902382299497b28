"""A drawn line as rows that end between words, for a window that would otherwise tear them apart."""

import re
from collections.abc import Iterator

from ostler.rendering.measure import count_columns
from ostler.text.width import width

MIN_COLUMNS = 8
_TOKEN = re.compile(r"(?P<colour>(?:\x1b\[[\d;]*m)+)|(?P<gap> +)|(?P<word>[^ \x1b]+|\x1b)")
_LEADING_COLUMN = re.compile(r"\s*(?:[!✗·]\s+)?(?:\S+(?: \S+)*\s{2,})?")
_MAX_HANGING_WIDTH = 40
_RESET = "\x1b[0m"
_CLOSING_PUNCTUATION = frozenset("，。、；：？！）】》」』”’…")  # what no row may begin with


def wrap(line: str, columns: int, hanging_indent: str = "") -> list[str]:
    """Rows of at most so many columns, the later ones behind `hanging`; a colour goes on over their ends.

    A word that is longer than a row stays whole, so that what is copied is what was said.
    """
    if len(line) <= columns // 2 or "\t" in line or columns - count_columns(hanging_indent) < MIN_COLUMNS:
        return [line]
    rows = _RowBuilder(columns, hanging_indent)
    for piece in _TOKEN.finditer(line):
        if piece.lastgroup == "word":
            for part in _split_word(piece[0]):
                rows.add_word(part)
        else:
            rows.add_separator(piece[0], is_space=piece.lastgroup == "gap")
    return rows.finish()


def wrap_notice(text: str, columns: int) -> list[str]:
    """Lines of ours in a window of so many columns: later rows begin below the words, in a list below the last."""
    if columns <= 0:
        return text.split("\n")
    return [row for line in text.split("\n") for row in wrap(line, columns, _hanging_indent(line))]


def _hanging_indent(line: str) -> str:
    found = _LEADING_COLUMN.match(line)
    return " " * min(count_columns(found[0]) if found else 0, _MAX_HANGING_WIDTH)


def _split_word(word: str) -> Iterator[str]:
    """A word as what may stand on different rows: scripts of wide letters have no spaces between their words."""
    if word.isascii() or width(word) == len(word):
        yield word
        return
    from wcwidth import iter_graphemes

    part, narrow = "", True
    for letter in iter_graphemes(word):
        slim = width(letter) < 2
        if part and not (slim and narrow) and letter not in _CLOSING_PUNCTUATION:
            yield part
            part = ""
        part, narrow = part + letter, slim
    yield part


class _RowBuilder:
    """The rows so far, the one that is being filled, and what stands between its last word and the next."""

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
        """Spaces, or a colour that begins or ends."""
        self._separators.append(text)
        self._gap_width += len(text) if is_space else 0

    def add_word(self, word: str) -> None:
        wide, before = width(word), self._used_columns + self._gap_width
        if before and before + wide > self._columns >= self._indent_width + wide:
            self._start_row()
        self._row += [*self._separators, word]
        for code in self._separators:
            if code.startswith("\x1b"):
                self._style = "" if code.endswith(_RESET) else code
        self._used_columns += self._gap_width + wide
        if self._used_columns > self._columns:  # the terminal goes on below by itself
            self._used_columns %= self._columns
        self._separators, self._gap_width = [], 0

    def finish(self) -> list[str]:
        return [*self._rows, "".join((*self._row, *self._separators))]

    def _start_row(self) -> None:
        """To the next row; one of mere spaces is left out."""
        if self._row:
            self._rows.append("".join(self._row) + (_RESET if self._style else ""))
            self._row = [self._hanging_indent, self._style]
            self._used_columns = self._indent_width
        self._separators = [code for code in self._separators if code.startswith("\x1b")]
        self._gap_width = 0
