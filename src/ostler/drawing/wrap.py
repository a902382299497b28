"""A drawn line as rows that end between words, for a window that would otherwise tear them apart."""

import re
from collections.abc import Iterator

from ostler.drawing.fitting import columns_of
from ostler.text.width import width

NARROWEST = 8
_PIECE = re.compile(r"(?P<colour>(?:\x1b\[[\d;]*m)+)|(?P<gap> +)|(?P<word>[^ \x1b]+|\x1b)")
_COLUMN = re.compile(r"\s*(?:[!✗·]\s+)?(?:\S+(?: \S+)*\s{2,})?")
_WIDEST_COLUMN = 40
_OFF = "\x1b[0m"
_CLOSING = frozenset("，。、；：？！）】》」』”’…")  # what no row may begin with


def wrapped(line: str, columns: int, hanging: str = "") -> list[str]:
    """Rows of at most so many columns, the later ones behind `hanging`; a colour goes on over their ends.

    A word that is longer than a row stays whole, so that what is copied is what was said.
    """
    if len(line) <= columns // 2 or "\t" in line or columns - columns_of(hanging) < NARROWEST:
        return [line]
    rows = _Rows(columns, hanging)
    for piece in _PIECE.finditer(line):
        if piece.lastgroup == "word":
            for part in _parts(piece[0]):
                rows.word(part)
        else:
            rows.between(piece[0], gap=piece.lastgroup == "gap")
    return rows.done()


def told_rows(text: str, columns: int) -> list[str]:
    """Lines of ours in a window of so many columns: later rows begin below the words, in a list below the last."""
    if columns <= 0:
        return text.split("\n")
    return [row for line in text.split("\n") for row in wrapped(line, columns, _below(line))]


def _below(line: str) -> str:
    found = _COLUMN.match(line)
    return " " * min(columns_of(found[0]) if found else 0, _WIDEST_COLUMN)


def _parts(word: str) -> Iterator[str]:
    """A word as what may stand on different rows: scripts of wide letters have no spaces between their words."""
    if word.isascii() or width(word) == len(word):
        yield word
        return
    from wcwidth import iter_graphemes

    part, narrow = "", True
    for letter in iter_graphemes(word):
        slim = width(letter) < 2
        if part and not (slim and narrow) and letter not in _CLOSING:
            yield part
            part = ""
        part, narrow = part + letter, slim
    yield part


class _Rows:
    """The rows so far, the one that is being filled, and what stands between its last word and the next."""

    def __init__(self, columns: int, hanging: str) -> None:
        self._columns = columns
        self._hanging, self._indent = hanging, columns_of(hanging)
        self._rows: list[str] = []
        self._row: list[str] = []
        self._used = 0
        self._style = ""
        self._between: list[str] = []
        self._gap = 0

    def between(self, text: str, *, gap: bool) -> None:
        """Spaces, or a colour that begins or ends."""
        self._between.append(text)
        self._gap += len(text) if gap else 0

    def word(self, word: str) -> None:
        wide, before = width(word), self._used + self._gap
        if before and before + wide > self._columns >= self._indent + wide:
            self._break()
        self._row += [*self._between, word]
        for code in self._between:
            if code.startswith("\x1b"):
                self._style = "" if code.endswith(_OFF) else code
        self._used += self._gap + wide
        if self._used > self._columns:  # the terminal goes on below by itself
            self._used %= self._columns
        self._between, self._gap = [], 0

    def done(self) -> list[str]:
        return [*self._rows, "".join((*self._row, *self._between))]

    def _break(self) -> None:
        """To the next row; one of mere spaces is left out."""
        if self._row:
            self._rows.append("".join(self._row) + (_OFF if self._style else ""))
            self._row = [self._hanging, self._style]
            self._used = self._indent
        self._between = [code for code in self._between if code.startswith("\x1b")]
        self._gap = 0
