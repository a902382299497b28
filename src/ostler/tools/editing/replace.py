"""The text that takes a match's place: lines that were only quoted keep what the file has, new ones take its form."""

from ostler.tools.editing.ladder import Rule, Span, same_bar
from ostler.tools.editing.lines import Lines, end_near, has_returns
from ostler.vocabulary.errors import ToolFailure


class Replacer:
    """What one replacement says about any place of one text that was found by one rule."""

    def __init__(self, text: str, rule: Rule, old: str, new: str) -> None:
        self._text = text
        self._rule = rule
        self._asked = old
        self._new = new
        self.literal = rule == "exact" and "\r" not in text and "\r" not in new
        if not self.literal:
            self._returns = has_returns(text)
            cut = rule == "final newline"
            old, new = (_without_end(old), _without_end(new)) if cut else (old, new)
            self._wanted = Lines(new, returns=self._returns)
            self._kept, self._instead = _paired(Lines(old, returns=self._returns).contents, self._wanted.contents)

    def at(self, span: Span) -> str:
        """What stands in the span's place afterwards."""
        there = self._text[span.start : span.end]
        if not same_bar(self._rule, there, self._asked):
            raise RuntimeError(f"a match by {self._rule} is not what was asked for")
        if self.literal:
            return self._new
        have, wanted = Lines(there, returns=self._returns), self._wanted
        end = end_near(self._text, span.start, returns=self._returns)
        pieces: list[str] = []
        for index, content in enumerate(wanted.contents):
            place = self._kept.get(index)
            pieces.append(_shifted(content, span) if place is None else have.contents[place])
            if index + 1 < len(wanted.contents):
                line = self._instead.get(index, place)
                end = (have.ends[line] if line is not None else "") or end
                pieces.append(end or wanted.ends[index])
        return "".join(pieces)


def _paired(asked: list[str], wanted: list[str]) -> tuple[dict[int, int], dict[int, int]]:
    """Which wanted line is which of the asked ones, and which stands in place of which."""
    from ostler.text.matching import matching_blocks

    same: dict[int, int] = {}
    instead: dict[int, int] = {}
    at_left = at_right = 0
    for left, right, size in [*matching_blocks(asked, wanted), (len(asked), len(wanted), 0)]:
        gap = min(left - at_left, right - at_right)
        instead |= {at_right + step: at_left + step for step in range(gap)}
        same |= {right + step: left + step for step in range(size)}
        at_left, at_right = left + size, right + size
    return same, instead


def _without_end(text: str) -> str:
    for end in ("\r\n", "\n", "\r"):
        if text.endswith(end):
            return text[: -len(end)]
    return text


def _shifted(line: str, span: Span) -> str:
    if not line.strip() or not (span.cut or span.add):
        return line
    if not line.startswith(span.cut):
        raise ToolFailure(
            f"old stands there with other indentation, and new cannot be shifted like it: {line.strip()[:80]!r} "
            "is indented too little; give old with the indentation it has in the file",
            code="no_match",
        )
    return span.add + line[len(span.cut) :]
