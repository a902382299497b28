"""Finds a text in another: exact match first, then increasingly tolerant rules.

exact            the same characters
line endings     the same lines with any line endings
final newline    the last line of a file without a newline at its end
trailing blanks  also ignores spaces and tabs at line ends
indentation      also allows all lines to be shifted by the same blanks
indent style     also allows other blanks for each level, such as a tab for four spaces
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from itertools import accumulate
from typing import Literal

import msgspec

from ostler.core.errors import ToolError
from ostler.tools.editing.indentation import IndentPair, find_indent_pairs, indent_of
from ostler.tools.editing.text_lines import BLANKS, TextLines, has_lone_cr

MatchRule = Literal["exact", "line endings", "final newline", "trailing blanks", "indentation", "indent style"]
REPEATABLE_RULES: tuple[MatchRule, ...] = ("exact", "line endings")
_MAX_CHARACTERS = 30_000_000  # total length of all candidate matches
_MAX_LINES = 500_000


class MatchSpan(msgspec.Struct, frozen=True):
    """A match. `indents` are the indentations of its lines: in the searched text, and in the file."""

    start: int
    end: int
    indents: tuple[IndentPair, ...] = ()


class TextMatches(msgspec.Struct, frozen=True):
    """The matches of the first rule that has any, as an iterator."""

    rule: MatchRule
    spans: Iterator[MatchSpan]


def find_text(text: str, old: str, *, overlapping: bool = True) -> TextMatches | None:
    """Return the matches of the strictest rule that has any, or None. Raises `ToolError` if there are too many."""
    view = _TextView(text)
    for rule, find in _MATCHERS:
        if rule not in REPEATABLE_RULES and not old.strip():
            return None  # only blanks: match exactly or not at all
        spans = find(view, old, overlapping)
        first = next(spans, None)
        if first is not None:
            return TextMatches(rule, _prepend(first, spans))
    return None


def same_except(rule: MatchRule, found: str, expected: str) -> bool:
    """Return whether two texts are equal under a rule; an independent check of a match."""
    if rule == "exact":
        return found == expected
    first, second = (text.replace("\r\n", "\n").replace("\r", "\n") for text in (found, expected))
    if rule == "final newline":
        return first + "\n" == second
    if rule == "line endings":
        return first == second
    return [_strip_blanks(line, rule) for line in first.split("\n")] == [
        _strip_blanks(line, rule) for line in second.split("\n")
    ]


def _strip_blanks(line: str, rule: MatchRule) -> str:
    return line.strip(BLANKS) if rule in ("indentation", "indent style") else line.rstrip(BLANKS)


def _prepend(first: MatchSpan, rest: Iterator[MatchSpan]) -> Iterator[MatchSpan]:
    yield first
    yield from rest


class _TextView:
    """A text, and its lines, which are split when a rule needs them."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.cr_is_newline = has_lone_cr(text)

    @cached_property
    def lines(self) -> tuple[list[str], list[int]]:
        lines = TextLines(self.text, cr_is_newline=self.cr_is_newline)
        return lines.contents, lines.starts()

    def split(self, old: str) -> list[str]:
        return TextLines(old, cr_is_newline=self.cr_is_newline).contents


def _match_exact(view: _TextView, old: str, overlapping: bool) -> Iterator[MatchSpan]:
    text = view.text
    for start in _find_all(text, old, overlapping):
        end = start + len(old)
        if not _splits_crlf(text, start) and not _splits_crlf(text, end):
            yield MatchSpan(start, end)


def _find_all(text: str, part: str, overlapping: bool) -> Iterator[int]:
    step = 1 if overlapping else len(part)
    budget = _MAX_CHARACTERS
    offset = text.find(part)
    while offset >= 0:
        yield offset
        budget -= len(part)
        if budget < 0:
            raise _too_many_error()
        offset = text.find(part, offset + step)


def _too_many_error() -> ToolError:
    message = "that text nearly matches in too many places; include text that is more distinctive"
    return ToolError(message, code="ambiguous")


def _splits_crlf(text: str, offset: int) -> bool:
    """Return whether an offset is between CR and LF, where a match must not start or end."""
    return 0 < offset < len(text) and text[offset] == "\n" and text[offset - 1] == "\r"


def _match_line_endings(view: _TextView, old: str, overlapping: bool) -> Iterator[MatchSpan]:
    if "\r" not in view.text and "\r" not in old:
        return iter(())
    contents, _ = view.lines
    return _match_joined_lines(view, contents, view.split(old), overlapping)


def _match_final_newline(view: _TextView, old: str, overlapping: bool) -> Iterator[MatchSpan]:
    contents, starts = view.lines
    old_lines = view.split(old)
    if len(old_lines) < 2 or old_lines[-1] or not contents[-1]:
        return
    expected = old_lines[:-1]
    first = len(contents) - len(expected)
    if first >= 0 and contents[first + 1 :] == expected[1:] and contents[first].endswith(expected[0]):
        yield MatchSpan(starts[first] + len(contents[first]) - len(expected[0]), len(view.text))


def _match_trailing_blanks(view: _TextView, old: str, overlapping: bool) -> Iterator[MatchSpan]:
    contents, _ = view.lines
    stripped = [content.rstrip(BLANKS) for content in contents]
    return _match_joined_lines(view, stripped, view.split(old), overlapping, trailing=True)


def _match_joined_lines(
    view: _TextView, normalized: list[str], old_lines: list[str], overlapping: bool, *, trailing: bool = False
) -> Iterator[MatchSpan]:
    """Find lines among the normalized lines of a text, and yield their spans in the text itself."""
    contents, starts = view.lines
    haystack = "\n".join(normalized)
    to_line_end = trailing and old_lines[-1] != old_lines[-1].rstrip(BLANKS)
    needle = "\n".join(line.rstrip(BLANKS) if trailing else line for line in old_lines)
    offsets = [0, *accumulate(len(line) + 1 for line in normalized)]

    def text_offset(offset: int, *, is_end: bool) -> int:
        line = bisect_right(offsets, offset) - 1
        column = offset - offsets[line]
        at_line_end = column == len(normalized[line]) and (not is_end or to_line_end)
        return starts[line] + (len(contents[line]) if at_line_end else column)

    for start in _find_all(haystack, needle, overlapping):
        end = start + len(needle)
        if not to_line_end or end == len(haystack) or haystack[end] == "\n":
            yield MatchSpan(text_offset(start, is_end=False), text_offset(end, is_end=True))


def _match_stripped_lines(
    view: _TextView, old: str, overlapping: bool, *, accept: Callable[[list[str], list[str]], object]
) -> Iterator[MatchSpan]:
    """Find lines that are equal without blanks around them, and whose indentations `accept` accepts."""
    contents, starts = view.lines
    old_lines = view.split(old)
    has_final_newline = len(old_lines) > 1 and not old_lines[-1]
    expected = old_lines[:-1] if has_final_newline else old_lines
    haystack = "\n".join(["", *(content.strip(BLANKS) for content in contents), ""])
    needle = "\n".join(["", *(content.strip(BLANKS) for content in expected), ""])
    line = counted = 0
    budget = _MAX_LINES
    for offset in _find_all(haystack, needle, overlapping=True):
        line, counted = line + haystack.count("\n", counted, offset), offset
        budget -= len(expected)
        if budget < 0:
            raise _too_many_error()
        last = line + len(expected) - 1
        actual = contents[line : last + 1]
        if accept(expected, actual) and not (has_final_newline and last + 1 == len(contents)):
            end = starts[last + 1] if has_final_newline else starts[last] + len(contents[last])
            yield MatchSpan(starts[line], end, find_indent_pairs(expected, actual) or ())


def find_indent_shift(expected: list[str], actual: list[str]) -> tuple[str, str] | None:
    """Return the indentation to remove from and to add to the expected lines to get the actual ones, or None.

    Trailing blanks and blank lines are ignored.
    """
    shift: tuple[str, str] | None = None
    for expected_line, actual_line in zip(expected, actual, strict=True):
        old, new = expected_line.rstrip(BLANKS), actual_line.rstrip(BLANKS)
        if not old and not new:
            continue
        if shift is None:
            shift = _first_shift(old, new)
        removed, added = shift
        if not old.startswith(removed) or added + old[len(removed) :] != new:
            return None
    return shift


def _first_shift(old: str, new: str) -> tuple[str, str]:
    removed, added = indent_of(old), indent_of(new)
    while removed and added and removed[-1] == added[-1]:
        removed, added = removed[:-1], added[:-1]
    return removed, added


_Matcher = Callable[[_TextView, str, bool], Iterator[MatchSpan]]
_MATCHERS: tuple[tuple[MatchRule, _Matcher], ...] = (
    ("exact", _match_exact),
    ("line endings", _match_line_endings),
    ("final newline", _match_final_newline),
    ("trailing blanks", _match_trailing_blanks),
    ("indentation", partial(_match_stripped_lines, accept=find_indent_shift)),
    ("indent style", partial(_match_stripped_lines, accept=find_indent_pairs)),
)
