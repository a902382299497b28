"""Where a text stands in another: exactly, else by a declared ladder of tolerant rules, the strictest first.

exact            the very characters
line endings     the same lines, whatever ends them
final newline    the last line of a file that has no line end there
trailing blanks  also, spaces and tabs at the ends of lines do not count
indentation      also, all lines are shifted by the same blanks
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Literal

import msgspec

from ostler.core.errors import ToolError
from ostler.tools.editing.text_lines import BLANKS, TextLines, has_lone_cr

MatchRule = Literal["exact", "line endings", "final newline", "trailing blanks", "indentation"]
REPEATABLE_RULES: tuple[MatchRule, ...] = ("exact", "line endings")
_MAX_CHARACTERS = 30_000_000  # in all places where a text begins to match; more than any file holds
_MAX_LINES = 500_000


class MatchSpan(msgspec.Struct, frozen=True):
    """A match; in it the blanks `cut` at the start of a line stand as `add`."""

    start: int
    end: int
    removed_indent: str = ""
    added_indent: str = ""


class TextMatches(msgspec.Struct, frozen=True):
    """What the first rule that finds anything finds, one by one."""

    rule: MatchRule
    spans: Iterator[MatchSpan]


def find_text(text: str, old: str, *, overlapping: bool = True) -> TextMatches | None:
    """The matches of the strictest rule that has any; None when no rule has."""
    view = _TextView(text)
    for rule, rung in _MATCHERS:
        if rule not in REPEATABLE_RULES and not old.strip():
            return None  # blanks alone are found exactly or not at all
        spans = rung(view, old, overlapping)
        first = next(spans, None)
        if first is not None:
            return TextMatches(rule, _prepend(first, spans))
    return None


def same_except(rule: MatchRule, found: str, expected: str) -> bool:
    """Whether two texts are the same but for what a rule leaves open; told apart from how a match was found."""
    if rule == "exact":
        return found == expected
    ours, theirs = (text.replace("\r\n", "\n").replace("\r", "\n") for text in (found, expected))
    if rule == "final newline":
        return ours + "\n" == theirs
    if rule == "line endings":
        return ours == theirs
    return [_strip_blanks(line, rule) for line in ours.split("\n")] == [
        _strip_blanks(line, rule) for line in theirs.split("\n")
    ]


def _strip_blanks(line: str, rule: MatchRule) -> str:
    return line.strip(BLANKS) if rule == "indentation" else line.rstrip(BLANKS)


def _prepend(first: MatchSpan, rest: Iterator[MatchSpan]) -> Iterator[MatchSpan]:
    yield first
    yield from rest


class _TextView:
    """A text and, made when a rule needs them, its lines."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.cr_is_newline = has_lone_cr(text)
        self._lines: tuple[list[str], list[int]] | None = None

    @property
    def lines(self) -> tuple[list[str], list[int]]:
        if self._lines is None:
            lines = TextLines(self.text, cr_is_newline=self.cr_is_newline)
            self._lines = lines.contents, lines.starts()
        return self._lines

    def split(self, old: str) -> list[str]:
        return TextLines(old, cr_is_newline=self.cr_is_newline).contents


def _match_exact(view: _TextView, old: str, overlapping: bool) -> Iterator[MatchSpan]:
    text = view.text
    for at in _find_all(text, old, overlapping):
        end = at + len(old)
        if not _splits_crlf(text, at) and not _splits_crlf(text, end):
            yield MatchSpan(at, end)


def _find_all(text: str, part: str, overlapping: bool) -> Iterator[int]:
    step = 1 if overlapping else len(part)
    left = _MAX_CHARACTERS
    at = text.find(part)
    while at >= 0:
        yield at
        left -= len(part)
        if left < 0:
            raise _too_many_error()
        at = text.find(part, at + step)


def _too_many_error() -> ToolError:
    said = "that text nearly matches in too many places to tell them apart; give a part of the file that differs more"
    return ToolError(said, code="ambiguous")


def _splits_crlf(text: str, offset: int) -> bool:
    """Whether a place is inside a CR LF: what begins or ends there would leave half a line end behind."""
    return 0 < offset < len(text) and text[offset] == "\n" and text[offset - 1] == "\r"


def _match_line_endings(view: _TextView, old: str, overlapping: bool) -> Iterator[MatchSpan]:
    if "\r" not in view.text and "\r" not in old:
        return iter(())
    contents, _ = view.lines
    return _match_joined_lines(view, contents, view.split(old), overlapping)


def _match_final_newline(view: _TextView, old: str, overlapping: bool) -> Iterator[MatchSpan]:
    contents, starts = view.lines
    pieces = view.split(old)
    if len(pieces) < 2 or pieces[-1] or not contents[-1]:
        return
    wanted = pieces[:-1]
    first = len(contents) - len(wanted)
    if first >= 0 and contents[first + 1 :] == wanted[1:] and contents[first].endswith(wanted[0]):
        yield MatchSpan(starts[first] + len(contents[first]) - len(wanted[0]), len(view.text))


def _match_trailing_blanks(view: _TextView, old: str, overlapping: bool) -> Iterator[MatchSpan]:
    contents, _ = view.lines
    pieces = view.split(old)
    return _match_joined_lines(view, [c.rstrip(BLANKS) for c in contents], pieces, overlapping, trailing=True)


def _match_joined_lines(
    view: _TextView, normalized: list[str], pieces: list[str], overlapping: bool, *, trailing: bool = False
) -> Iterator[MatchSpan]:
    """Matches among lines as a rule sees them (never longer than they are), told as places in the text."""
    contents, starts = view.lines
    haystack = "\n".join(normalized)
    whole_last = trailing and pieces[-1] != pieces[-1].rstrip(BLANKS)
    needle = "\n".join(piece.rstrip(BLANKS) if trailing else piece for piece in pieces)
    places = [0, *accumulate(len(line) + 1 for line in normalized)]

    def place(at: int, *, ends: bool) -> int:
        line = bisect_right(places, at) - 1
        column = at - places[line]
        at_end = column == len(normalized[line]) and (not ends or whole_last)
        return starts[line] + (len(contents[line]) if at_end else column)

    for at in _find_all(haystack, needle, overlapping):
        end = at + len(needle)
        if not whole_last or end == len(haystack) or haystack[end] == "\n":
            yield MatchSpan(place(at, ends=False), place(end, ends=True))


def _match_indentation(view: _TextView, old: str, overlapping: bool) -> Iterator[MatchSpan]:
    contents, starts = view.lines
    pieces = view.split(old)
    ended = len(pieces) > 1 and not pieces[-1]
    wanted = pieces[:-1] if ended else pieces
    haystack = "\n".join(["", *(content.strip(BLANKS) for content in contents), ""])
    needle = "\n".join(["", *(piece.strip(BLANKS) for piece in wanted), ""])
    line = counted = 0
    left = _MAX_LINES
    for at in _find_all(haystack, needle, overlapping=True):
        line, counted = line + haystack.count("\n", counted, at), at
        left -= len(wanted)
        if left < 0:
            raise _too_many_error()
        last = line + len(wanted) - 1
        shift = find_indent_shift(wanted, contents[line : last + 1])
        if shift and not (ended and last + 1 == len(contents)):
            yield MatchSpan(starts[line], starts[last + 1] if ended else starts[last] + len(contents[last]), *shift)


def find_indent_shift(expected: list[str], actual: list[str]) -> tuple[str, str] | None:
    """The blanks to cut from each asked line and those to add, so that they read as the lines there; None for none.

    Blanks at the ends of lines do not count; blank lines say nothing of the shift.
    """
    shift: tuple[str, str] | None = None
    for want, have in zip(expected, actual, strict=True):
        want_bare, have_bare = want.rstrip(BLANKS), have.rstrip(BLANKS)
        if not want_bare and not have_bare:
            continue
        if shift is None:
            shift = _first_shift(want_bare, have_bare)
        cut, add = shift
        if not want_bare.startswith(cut) or add + want_bare[len(cut) :] != have_bare:
            return None
    return shift


def _first_shift(want: str, have: str) -> tuple[str, str]:
    cut = want[: len(want) - len(want.lstrip(BLANKS))]
    add = have[: len(have) - len(have.lstrip(BLANKS))]
    while cut and add and cut[-1] == add[-1]:
        cut, add = cut[:-1], add[:-1]
    return cut, add


_Matcher = Callable[[_TextView, str, bool], Iterator[MatchSpan]]
_MATCHERS: tuple[tuple[MatchRule, _Matcher], ...] = (
    ("exact", _match_exact),
    ("line endings", _match_line_endings),
    ("final newline", _match_final_newline),
    ("trailing blanks", _match_trailing_blanks),
    ("indentation", _match_indentation),
)
