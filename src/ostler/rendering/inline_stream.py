"""Renders the inline markup of a line while it streams."""

import re

from ostler.rendering.inline_markup import INLINE, NEEDS_NEXT, render_inline_match
from ostler.rendering.style import Styler

MAX_HELD = 120
MAX_PRINTED = 4096
_MARK = re.compile(r"`+|\*+|_+|~+|!?\[|!\Z")
_UNCLOSED = re.compile(
    r"`[^`]*"
    r"|\*\*\*[^*]*\*{0,2}|\*\*[^*]*\*?|\*|(?<![\w*])\*[^*\s][^*]*\*?"
    r"|(?<![\w_])_(?:[^_\s][^_]*_?)?"
    r"|~|~~[^~]*~?"
    r"|!?\[[^\]\[]*(?:\](?:\([^()\s]*)?)?|!"
)


class InlineStream:
    """The text of one line. A marked-up phrase waits for its end; one longer than `MAX_HELD` is not styled."""

    def __init__(self, paint: Styler, text_before: str = "") -> None:
        """`text_before` is the start of the line, which is already printed."""
        self._paint = paint
        self._source = text_before
        self._position = len(text_before)  # of the first character that is not rendered yet
        self._unstyled_mark = ""  # of a phrase that was too long

    def feed(self, text: str) -> str:
        """Return the rendered text that later text cannot change."""
        if not self._paint.enabled:
            return text
        self._source += text
        rendered = self._render(complete=False)
        if self._position > MAX_PRINTED:
            self._source, self._position = self._source[self._position - 1 :], 1
        return rendered

    def finish(self) -> str:
        """Return the rest of the line."""
        return self._render(complete=True)

    def _render(self, *, complete: bool) -> str:
        out: list[str] = []
        while self._position < len(self._source):
            mark = _MARK.search(self._source, self._position)
            end = mark.start() if mark else len(self._source)
            out.append(self._source[self._position : end])
            self._position = end
            rendered = self._render_mark(mark, complete=complete) if mark else ""
            if rendered is None:
                break
            out.append(rendered)
        return "".join(out)

    def _render_mark(self, mark: "re.Match[str]", *, complete: bool) -> str | None:
        """Render the phrase at the current position, or the mark as plain text; None if more text must come first."""
        source, start = self._source, self._position
        phrase = INLINE.match(source, start)
        is_at_end = (
            not complete and phrase is not None and phrase.end() == len(source) and phrase.lastgroup in NEEDS_NEXT
        )
        if mark[0] == self._unstyled_mark:
            self._unstyled_mark = ""
        elif phrase and not is_at_end:
            self._position = phrase.end()
            return render_inline_match(phrase, self._paint)
        elif not complete and (is_at_end or _UNCLOSED.fullmatch(source, start)):
            if len(source) - start <= MAX_HELD:
                return None
            self._unstyled_mark = mark[0].strip("![")
        else:  # not a phrase; the next character may start one
            self._position += 1
            return mark[0][0]
        self._position = mark.end()
        return mark[0]
