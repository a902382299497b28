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

from ostler.tools.editing.lines import BLANKS, Lines, has_returns
from ostler.vocabulary.errors import ToolFailure

Rule = Literal["exact", "line endings", "final newline", "trailing blanks", "indentation"]
REPEATABLE: tuple[Rule, ...] = ("exact", "line endings")
_MOST_CHARACTERS = 30_000_000  # in all places where a text begins to match; more than any file holds
_MOST_LINES = 500_000


class Span(msgspec.Struct, frozen=True):
    """A match; in it the blanks `cut` at the start of a line stand as `add`."""

    start: int
    end: int
    cut: str = ""
    add: str = ""


class Found(msgspec.Struct, frozen=True):
    """What the first rule that finds anything finds, one by one."""

    rule: Rule
    spans: Iterator[Span]


def find(text: str, old: str, *, overlapping: bool = True) -> Found | None:
    """The matches of the strictest rule that has any; None when no rule has."""
    view = _View(text)
    for rule, rung in _RUNGS:
        if rule not in REPEATABLE and not old.strip():
            return None  # blanks alone are found exactly or not at all
        spans = rung(view, old, overlapping)
        first = next(spans, None)
        if first is not None:
            return Found(rule, _chained(first, spans))
    return None


def same_bar(rule: Rule, found: str, asked: str) -> bool:
    """Whether two texts are the same but for what a rule leaves open; told apart from how a match was found."""
    if rule == "exact":
        return found == asked
    ours, theirs = (text.replace("\r\n", "\n").replace("\r", "\n") for text in (found, asked))
    if rule == "final newline":
        return ours + "\n" == theirs
    if rule == "line endings":
        return ours == theirs
    return [_bare(line, rule) for line in ours.split("\n")] == [_bare(line, rule) for line in theirs.split("\n")]


def _bare(line: str, rule: Rule) -> str:
    return line.strip(BLANKS) if rule == "indentation" else line.rstrip(BLANKS)


def _chained(first: Span, rest: Iterator[Span]) -> Iterator[Span]:
    yield first
    yield from rest


class _View:
    """A text and, made when a rule needs them, its lines."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.returns = has_returns(text)
        self._lines: tuple[list[str], list[int]] | None = None

    @property
    def lines(self) -> tuple[list[str], list[int]]:
        if self._lines is None:
            lines = Lines(self.text, returns=self.returns)
            self._lines = lines.contents, lines.starts()
        return self._lines

    def pieces(self, old: str) -> list[str]:
        return Lines(old, returns=self.returns).contents


def _exact(view: _View, old: str, overlapping: bool) -> Iterator[Span]:
    text = view.text
    for at in _places(text, old, overlapping):
        end = at + len(old)
        if not _parts_a_pair(text, at) and not _parts_a_pair(text, end):
            yield Span(at, end)


def _places(text: str, part: str, overlapping: bool) -> Iterator[int]:
    step = 1 if overlapping else len(part)
    left = _MOST_CHARACTERS
    at = text.find(part)
    while at >= 0:
        yield at
        left -= len(part)
        if left < 0:
            raise _too_many()
        at = text.find(part, at + step)


def _too_many() -> ToolFailure:
    said = "that text nearly matches in too many places to tell them apart; give a part of the file that differs more"
    return ToolFailure(said, code="ambiguous")


def _parts_a_pair(text: str, at: int) -> bool:
    """Whether a place is inside a CR LF: what begins or ends there would leave half a line end behind."""
    return 0 < at < len(text) and text[at] == "\n" and text[at - 1] == "\r"


def _line_endings(view: _View, old: str, overlapping: bool) -> Iterator[Span]:
    if "\r" not in view.text and "\r" not in old:
        return iter(())
    contents, _ = view.lines
    return _joined(view, contents, view.pieces(old), overlapping)


def _final_newline(view: _View, old: str, overlapping: bool) -> Iterator[Span]:
    contents, starts = view.lines
    pieces = view.pieces(old)
    if len(pieces) < 2 or pieces[-1] or not contents[-1]:
        return
    wanted = pieces[:-1]
    first = len(contents) - len(wanted)
    if first >= 0 and contents[first + 1 :] == wanted[1:] and contents[first].endswith(wanted[0]):
        yield Span(starts[first] + len(contents[first]) - len(wanted[0]), len(view.text))


def _trailing_blanks(view: _View, old: str, overlapping: bool) -> Iterator[Span]:
    contents, _ = view.lines
    pieces = view.pieces(old)
    return _joined(view, [c.rstrip(BLANKS) for c in contents], pieces, overlapping, trailing=True)


def _joined(
    view: _View, shown: list[str], pieces: list[str], overlapping: bool, *, trailing: bool = False
) -> Iterator[Span]:
    """Matches among lines as a rule sees them (never longer than they are), told as places in the text."""
    contents, starts = view.lines
    haystack = "\n".join(shown)
    whole_last = trailing and pieces[-1] != pieces[-1].rstrip(BLANKS)
    needle = "\n".join(piece.rstrip(BLANKS) if trailing else piece for piece in pieces)
    places = [0, *accumulate(len(line) + 1 for line in shown)]

    def place(at: int, *, ends: bool) -> int:
        line = bisect_right(places, at) - 1
        column = at - places[line]
        at_end = column == len(shown[line]) and (not ends or whole_last)
        return starts[line] + (len(contents[line]) if at_end else column)

    for at in _places(haystack, needle, overlapping):
        end = at + len(needle)
        if not whole_last or end == len(haystack) or haystack[end] == "\n":
            yield Span(place(at, ends=False), place(end, ends=True))


def _indentation(view: _View, old: str, overlapping: bool) -> Iterator[Span]:
    contents, starts = view.lines
    pieces = view.pieces(old)
    ended = len(pieces) > 1 and not pieces[-1]
    wanted = pieces[:-1] if ended else pieces
    haystack = "\n".join(["", *(content.strip(BLANKS) for content in contents), ""])
    needle = "\n".join(["", *(piece.strip(BLANKS) for piece in wanted), ""])
    line = counted = 0
    left = _MOST_LINES
    for at in _places(haystack, needle, overlapping=True):
        line, counted = line + haystack.count("\n", counted, at), at
        left -= len(wanted)
        if left < 0:
            raise _too_many()
        last = line + len(wanted) - 1
        shift = shift_of(wanted, contents[line : last + 1])
        if shift and not (ended and last + 1 == len(contents)):
            yield Span(starts[line], starts[last + 1] if ended else starts[last] + len(contents[last]), *shift)


def shift_of(asked: list[str], there: list[str]) -> tuple[str, str] | None:
    """The blanks to cut from each asked line and those to add, so that they read as the lines there; None for none.

    Blanks at the ends of lines do not count; blank lines say nothing of the shift.
    """
    shift: tuple[str, str] | None = None
    for want, have in zip(asked, there, strict=True):
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


_Rung = Callable[[_View, str, bool], Iterator[Span]]
_RUNGS: tuple[tuple[Rule, _Rung], ...] = (
    ("exact", _exact),
    ("line endings", _line_endings),
    ("final newline", _final_newline),
    ("trailing blanks", _trailing_blanks),
    ("indentation", _indentation),
)
