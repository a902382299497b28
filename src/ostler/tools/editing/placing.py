"""Where a hunk belongs: at the line it names, else at the one place that has its lines, else nowhere."""

from collections.abc import Iterator, Sequence

import msgspec

from ostler.tools.editing.ladder import shift_of
from ostler.tools.editing.lines import BLANKS
from ostler.tools.editing.patches import Hunk, Line
from ostler.tools.editing.sheet import Sheet, Tolerance, Unplaced

_TOLERANCES: tuple[Tolerance, ...] = ("exact", "trailing blanks", "indentation")
_FUZZ = 2  # lines of context, at each end, that may be others by now


class Placed(msgspec.Struct, frozen=True):
    """A hunk's lines that count, the index they begin at, and what was needed to place them."""

    start: int
    lines: tuple[Line, ...]
    cut: str = ""
    add: str = ""
    notes: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        return sum(line.sign != "+" for line in self.lines)


def place(hunk: Hunk, sheet: Sheet, floor: int, drift: int) -> Placed:
    """The place of a hunk behind `floor`, when hunks before it were found `drift` lines further down than they said."""
    after = _behind_anchors(hunk, sheet, floor)
    if not hunk.old:
        return _insertion(hunk, sheet, after)
    stated = _stated(hunk, sheet, floor, drift)
    if stated is not None:
        return Placed(stated, hunk.lines)
    for tolerance in _TOLERANCES:
        found = _only(hunk, hunk.lines, sheet, tolerance, floor, after)
        if found is not None:
            return _placed(hunk.lines, sheet, found, tolerance)
    for lines in _with_less_context(hunk):
        for tolerance in _TOLERANCES[:2]:
            found = _only(hunk, lines, sheet, tolerance, floor, after)
            if found is not None:
                left = len(hunk.lines) - len(lines)
                note = f"{left} {'line' if left == 1 else 'lines'} of context not as in the file"
                return _placed(lines, sheet, found, tolerance, (note,))
    raise Unplaced("its lines are not in the file")


def _stated(hunk: Hunk, sheet: Sheet, floor: int, drift: int) -> int | None:
    """The place the hunk names, if its very lines are there."""
    wanted = [line.text for line in hunk.old]
    at = hunk.start - 1 + drift if hunk.start else -1
    fits = at >= floor and sheet.matches(wanted, at) and _fits_end(hunk.lines, sheet, at + len(wanted))
    return at if fits else None


def _behind_anchors(hunk: Hunk, sheet: Sheet, floor: int) -> int | None:
    """The index behind the hunk's anchors; None when it has none, or the first of them is not the only one."""
    at: int | None = None
    for anchor in hunk.anchors:
        here = floor if at is None else at
        found = sheet.places([anchor], "exact", here) or sheet.places([anchor], "indentation", here)
        if not found:
            raise Unplaced(f"the line of its anchor, {anchor[:120]!r}, is not in the file")
        if at is None and len(found) > 1:
            return None
        at = found[0] + 1
    return at


def _insertion(hunk: Hunk, sheet: Sheet, after: int | None) -> Placed:
    """Lines without surroundings go behind their anchor, or to the end in the form that means it so."""
    if after is not None:
        return Placed(after, hunk.lines)
    if hunk.anchors:
        raise Unplaced("the line of its anchor is there more than once")
    if hunk.start is None or not sheet.contents:
        return Placed(len(sheet.contents), hunk.lines)
    raise Unplaced("it has no line of context to find its place by")


def _only(
    hunk: Hunk, lines: Sequence[Line], sheet: Sheet, tolerance: Tolerance, floor: int, after: int | None
) -> int | None:
    """The one place of some of a hunk's lines by a tolerance, None for none; several are refused."""
    wanted = [line.text for line in lines if line.sign != "+"]
    found = sheet.places(wanted, tolerance, floor if after is None else after)
    fitting = [at for at in found if _fits_end(lines, sheet, at + len(wanted))]
    at_end = len(sheet.contents) - len(wanted)
    if hunk.at_end and at_end in fitting:
        return at_end
    if after is not None and fitting:
        return fitting[0]
    if len(fitting) > 1:
        raise Unplaced("its lines are in the file more than once", fitting)
    return fitting[0] if fitting else None


def _fits_end(lines: Sequence[Line], sheet: Sheet, end: int) -> bool:
    """A line without a line end can only be the last one."""
    return end == len(sheet.contents) or all(line.end for line in lines)


def _with_less_context(hunk: Hunk) -> Iterator[tuple[Line, ...]]:
    """The hunk without one or more lines of context at its ends."""
    most_before, most_behind = _spare(hunk.lines), _spare(hunk.lines[::-1])
    choices = [
        (less + more, less, more) for less in range(most_before + 1) for more in range(most_behind + 1) if less + more
    ]
    for _, less, more in sorted(choices):
        lines = hunk.lines[less : len(hunk.lines) - more]
        if any(line.text.strip() for line in lines if line.sign != "+"):
            yield lines


def _spare(lines: Sequence[Line]) -> int:
    """How many lines at the beginning may be other ones: the line next to a change must stay, unless it is blank."""
    context = next(index for index, line in enumerate(lines) if line.sign != " ")
    blank = context > 0 and not lines[context - 1].text.strip()
    return min(_FUZZ, context if blank else max(context - 1, 0))


def _placed(
    lines: tuple[Line, ...], sheet: Sheet, at: int, tolerance: Tolerance, notes: tuple[str, ...] = ()
) -> Placed:
    if tolerance == "exact":
        return Placed(at, lines, notes=notes)
    notes = (f"matched: {tolerance}", *notes)
    if tolerance == "trailing blanks":
        return Placed(at, lines, notes=notes)
    wanted = [line.text for line in lines if line.sign != "+"]
    cut, add = shift_of(wanted, list(sheet.contents[at : at + len(wanted)])) or ("", "")
    if not all(line.text.startswith(cut) for line in lines if line.text.strip(BLANKS)):
        raise Unplaced(f"its lines stand at line {at + 1} indented otherwise, and its new lines cannot be shifted so")
    return Placed(at, lines, cut, add, notes)
