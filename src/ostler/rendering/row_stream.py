"""Wraps a line between words while it streams; printed text never changes."""

from ostler.rendering.measure import count_columns
from ostler.rendering.wrapping import MIN_COLUMNS, RESET, TOKEN, split_word
from ostler.text.width import width

# The start of a word is printed at once if this many columns remain for its rest.
WORD_RESERVE = 24


class RowStream:
    """One line in rows of at most `columns`. Each row after the first starts with `row_start`.

    Without columns, nothing is wrapped and every character is printed at once.
    """

    def __init__(self, columns: int, row_start: str, hanging_indent: str) -> None:
        self._columns = columns if columns - count_columns(hanging_indent) >= MIN_COLUMNS else 0
        self._row_start = f"\n{row_start}{hanging_indent}"
        self._indent_width = count_columns(hanging_indent)
        self._used_columns = 0
        self._style = ""
        self._separators: list[str] = []
        self._gap_width = 0
        self._word = ""  # the held start of a word
        self._in_word = False  # the start of the current word is printed
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
        for token in TOKEN.finditer(text):
            if token.lastgroup != "word":
                out.append(self._add_separator(token[0], is_space=token.lastgroup == "gap"))
                continue
            *parts, last = split_word(token[0])
            out += [self._add_word(part) for part in parts]
            out.append(self._add_word(last) if token.end() < len(text) else self._start_word(last))
        return "".join(out)

    def finish(self) -> str:
        """End the line and return its held text, without the spaces at its end."""
        word, self._word = self._word, ""
        styles = "".join(code for code in self._separators if code.startswith("\x1b"))
        return self._add_word(word) if word else styles

    def continue_on_new_row(self) -> None:
        """Continue on a new row, because other lines were printed in between."""
        self._used_columns, self._gap_width, self._is_resumed = 0, 0, True
        self._separators = [code for code in self._separators if code.startswith("\x1b")]

    def _start_word(self, word: str) -> str:
        start = self._used_columns + self._gap_width
        if self._in_word or start + width(word) + WORD_RESERVE <= self._columns:
            printed = self._add_word(word)
            self._in_word = True
            return printed
        self._word = word
        return ""

    def _add_separator(self, text: str, *, is_space: bool) -> str:
        self._in_word = self._in_word and not is_space
        self._separators.append(text)
        self._gap_width += len(text) if is_space else 0
        return ""

    def _add_word(self, word: str) -> str:
        word_width, start, row_break = width(word), self._used_columns + self._gap_width, ""
        fits_next_row = self._columns >= self._indent_width + word_width
        if start and not self._in_word and start + word_width > self._columns and fits_next_row:
            row_break = self._break_row()
        self._used_columns += self._gap_width + word_width
        if self._used_columns > self._columns:  # the terminal itself wraps a long word
            self._used_columns %= self._columns
        self._in_word = False
        return f"{row_break}{self._take_separators()}{word}"

    def _break_row(self) -> str:
        reset, self._used_columns, self._gap_width = RESET if self._style else "", self._indent_width, 0
        self._separators = [code for code in self._separators if code.startswith("\x1b")]
        return f"{reset}{self._row_start}{self._style}"

    def _take_separators(self) -> str:
        separators, self._separators, self._gap_width = self._separators, [], 0
        for code in separators:
            if code.startswith("\x1b"):
                self._style = "" if code.endswith(RESET) else code
        return "".join(separators)
