"""Wraps styled lines between words, also while they stream."""

import re
from collections.abc import Iterator

from ostler.rendering.measure import count_columns
from ostler.text.width import width

MIN_COLUMNS = 8
_TOKEN = re.compile(r"(?P<colour>(?:\x1b\[[\d;]*m)+)|(?P<gap> +)|(?P<word>[^ \x1b]+|\x1b)")
_LEADING_COLUMN = re.compile(r"\s*(?:[!✗·]\s+)?(?:\S+(?: \S+)*\s{2,})?")
_MAX_HANGING_WIDTH = 40
_WORD_RESERVE = 24  # the start of a word is printed at once if this many columns remain for its rest
_RESET = "\x1b[0m"
_CLOSING_PUNCTUATION = frozenset("，。、；：？！）】》」』”’…")  # no row starts with one of these


def wrap(line: str, columns: int, hanging_indent: str = "") -> list[str]:
    """Wrap a line into rows of at most `columns`; continuation rows start with `hanging_indent` and keep the style.

    A word that is longer than a row is not split, so that it can be copied.
    """
    if len(line) <= columns // 2:
        return [line]
    stream = RowStream(columns, "", hanging_indent)
    return (stream.feed(line) + stream.finish(with_spaces=True)).split("\n")


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


class RowStream:
    """One line in rows of at most `columns`, while it streams. Each row after the first starts with `row_start`.

    Printed text never changes. Without columns, nothing is wrapped and every character is printed at once.
    """

    def __init__(self, columns: int, row_start: str, hanging_indent: str) -> None:
        self._indent_width = count_columns(hanging_indent)
        self._columns = columns if columns - self._indent_width >= MIN_COLUMNS else 0
        self._row_start = f"\n{row_start}{hanging_indent}"
        self._used_columns = 0
        self._style = ""
        self._separators: list[str] = []
        self._gap_width = 0
        self._word = ""  # the held start of a word
        self._in_word = False  # the start of the current word is printed
        self._has_words = False
        self._is_resumed = False  # spaces at the start of a resumed row are dropped

    def feed(self, text: str) -> str:
        """Return what can be printed now of this styled text and of the text held before."""
        if "\t" in text:
            self._columns = 0
        text, self._word = self._word + text, ""
        if self._is_resumed:
            text = text.lstrip(" ")
            self._is_resumed = not text
        if not self._columns:
            return self._take_separators() + text
        out: list[str] = []
        for token in _TOKEN.finditer(text):
            word, is_last = token[0], token.end() == len(text)
            if token.lastgroup != "word":
                self._add_separator(word, is_space=token.lastgroup == "gap")
            elif word.isascii() and not is_last:  # most words
                out.append(self._add_word(word))
            else:
                *parts, last = split_word(word)
                out += [self._add_word(part) for part in parts]
                out.append(self._start_word(last) if is_last else self._add_word(last))
        return "".join(out)

    def finish(self, *, with_spaces: bool = False) -> str:
        """End the line and return its held text; only `with_spaces` with the spaces at its end."""
        word, self._word = self._word, ""
        if word:
            return self._add_word(word)
        if not with_spaces:
            self._drop_gap()
        return self._take_separators()

    def continue_on_new_row(self) -> None:
        """Continue on a new row, because other lines were printed in between."""
        self._used_columns, self._is_resumed = 0, True
        self._drop_gap()

    def _start_word(self, word: str) -> str:
        start = self._used_columns + self._gap_width
        if self._in_word or start + width(word) + _WORD_RESERVE <= self._columns:
            printed = self._add_word(word)
            self._in_word = True
            return printed
        self._word = word
        return ""

    def _add_separator(self, text: str, *, is_space: bool) -> None:
        self._separators.append(text)
        if is_space:
            self._in_word = False
            self._gap_width += len(text)

    def _add_word(self, word: str) -> str:
        word_width, start, row_break = width(word), self._used_columns + self._gap_width, ""
        if start and start + word_width > self._columns >= self._indent_width + word_width and not self._in_word:
            row_break = self._break_row()
        self._used_columns += self._gap_width + word_width
        if self._used_columns > self._columns:  # the terminal itself wraps a long word
            self._used_columns %= self._columns
        self._in_word, self._has_words = False, True
        return f"{row_break}{self._take_separators()}{word}" if self._separators else row_break + word

    def _break_row(self) -> str:
        """Start the next row; a row of spaces only is dropped."""
        self._drop_gap()
        if not self._has_words:
            return ""
        self._used_columns = self._indent_width
        return f"{_RESET if self._style else ''}{self._row_start}{self._style}"

    def _drop_gap(self) -> None:
        """Drop the spaces after the last word."""
        self._separators, self._gap_width = [code for code in self._separators if code.startswith("\x1b")], 0

    def _take_separators(self) -> str:
        separators, self._separators, self._gap_width = self._separators, [], 0
        for code in separators:
            if code.startswith("\x1b"):
                self._style = "" if code.endswith(_RESET) else code
        return "".join(separators)
