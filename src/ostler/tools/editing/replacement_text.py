"""The text that takes a match's place: lines that were only quoted keep what the file has, new ones take its form."""

from ostler.core.errors import ToolError
from ostler.tools.editing.text_lines import TextLines, has_lone_cr, nearest_newline
from ostler.tools.editing.text_match import MatchRule, MatchSpan, same_except


class Replacer:
    """What one replacement says about any place of one text that was found by one rule."""

    def __init__(self, text: str, rule: MatchRule, old: str, new: str) -> None:
        self._text = text
        self._rule = rule
        self._old = old
        self._new = new
        self.is_literal = rule == "exact" and "\r" not in text and "\r" not in new
        if not self.is_literal:
            self._cr_is_newline = has_lone_cr(text)
            cut = rule == "final newline"
            old, new = (_strip_newline(old), _strip_newline(new)) if cut else (old, new)
            self._new_lines = TextLines(new, cr_is_newline=self._cr_is_newline)
            self._unchanged_lines, self._replaced_lines = _pair_lines(
                TextLines(old, cr_is_newline=self._cr_is_newline).contents, self._new_lines.contents
            )

    def text_for(self, span: MatchSpan) -> str:
        """What stands in the span's place afterwards."""
        there = self._text[span.start : span.end]
        if not same_except(self._rule, there, self._old):
            raise RuntimeError(f"a match by {self._rule} is not what was asked for")
        if self.is_literal:
            return self._new
        have, wanted = TextLines(there, cr_is_newline=self._cr_is_newline), self._new_lines
        end = nearest_newline(self._text, span.start, cr_is_newline=self._cr_is_newline)
        pieces: list[str] = []
        for index, content in enumerate(wanted.contents):
            place = self._unchanged_lines.get(index)
            pieces.append(_shift_line(content, span) if place is None else have.contents[place])
            if index + 1 < len(wanted.contents):
                line = self._replaced_lines.get(index, place)
                end = (have.ends[line] if line is not None else "") or end
                pieces.append(end or wanted.ends[index])
        return "".join(pieces)


def _pair_lines(old_lines: list[str], new_lines: list[str]) -> tuple[dict[int, int], dict[int, int]]:
    """Which wanted line is which of the asked ones, and which stands in place of which."""
    from ostler.text.matching import matching_blocks

    same: dict[int, int] = {}
    instead: dict[int, int] = {}
    at_left = at_right = 0
    for left, right, size in [*matching_blocks(old_lines, new_lines), (len(old_lines), len(new_lines), 0)]:
        gap = min(left - at_left, right - at_right)
        instead |= {at_right + step: at_left + step for step in range(gap)}
        same |= {right + step: left + step for step in range(size)}
        at_left, at_right = left + size, right + size
    return same, instead


def _strip_newline(text: str) -> str:
    for end in ("\r\n", "\n", "\r"):
        if text.endswith(end):
            return text[: -len(end)]
    return text


def _shift_line(line: str, span: MatchSpan) -> str:
    if not line.strip() or not (span.removed_indent or span.added_indent):
        return line
    if not line.startswith(span.removed_indent):
        raise ToolError(
            f"old stands there with other indentation, and new cannot be shifted like it: {line.strip()[:80]!r} "
            "is indented too little; give old with the indentation it has in the file",
            code="no_match",
        )
    return span.added_indent + line[len(span.removed_indent) :]
