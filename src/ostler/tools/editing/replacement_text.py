"""Computes the text that replaces a match, in the file's line endings and indentation."""

from ostler.tools.editing.indentation import IndentTranslator
from ostler.tools.editing.text_lines import TextLines, has_lone_cr, nearest_newline
from ostler.tools.editing.text_match import MatchRule, MatchSpan, same_except


class Replacer:
    """Computes the new text of each match of one replacement.

    Unchanged lines keep their form in the file; new lines get its line endings and indentation.
    """

    def __init__(self, text: str, rule: MatchRule, old: str, new: str) -> None:
        self._text = text
        self._rule = rule
        self._old = old
        self._new = new
        self.is_literal = rule == "exact" and "\r" not in text and "\r" not in new
        if not self.is_literal:
            self._cr_is_newline = has_lone_cr(text)
            if rule == "final newline":
                old, new = _strip_newline(old), _strip_newline(new)
            self._new_lines = TextLines(new, cr_is_newline=self._cr_is_newline)
            old_lines = TextLines(old, cr_is_newline=self._cr_is_newline).contents
            self._given_lines = [*old_lines, *self._new_lines.contents]
            self._unchanged_lines, self._replaced_lines = _pair_lines(old_lines, self._new_lines.contents)

    def text_for(self, span: MatchSpan) -> str:
        """Return the text that replaces a match. Raises `ToolError` if it cannot be indented like the match."""
        matched = self._text[span.start : span.end]
        if not same_except(self._rule, matched, self._old):
            raise RuntimeError(f"a match by the rule {self._rule!r} differs from the requested text")
        if self.is_literal:
            return self._new
        old_lines, new_lines = TextLines(matched, cr_is_newline=self._cr_is_newline), self._new_lines
        end = nearest_newline(self._text, span.start, cr_is_newline=self._cr_is_newline)
        indents = IndentTranslator(span.indents, self._given_lines)
        parts: list[str] = []
        for index, content in enumerate(new_lines.contents):
            old_index = self._unchanged_lines.get(index)
            parts.append(indents.translate(content) if old_index is None else old_lines.contents[old_index])
            if index + 1 < len(new_lines.contents):
                line = self._replaced_lines.get(index, old_index)
                end = (old_lines.ends[line] if line is not None else "") or end
                parts.append(end or new_lines.ends[index])
        return "".join(parts)


def _pair_lines(old_lines: list[str], new_lines: list[str]) -> tuple[dict[int, int], dict[int, int]]:
    """Map the indexes of new lines to equal old lines, and to the old lines that they replace."""
    from ostler.text.matching import matching_blocks

    same: dict[int, int] = {}
    replaced: dict[int, int] = {}
    old_index = new_index = 0
    for left, right, size in [*matching_blocks(old_lines, new_lines), (len(old_lines), len(new_lines), 0)]:
        gap = min(left - old_index, right - new_index)
        replaced |= {new_index + step: old_index + step for step in range(gap)}
        same |= {right + step: left + step for step in range(size)}
        old_index, new_index = left + size, right + size
    return same, replaced


def _strip_newline(text: str) -> str:
    for end in ("\r\n", "\n", "\r"):
        if text.endswith(end):
            return text[: -len(end)]
    return text
