"""Where a hunk belongs: at the line it names, else at the one place that has its lines, else nowhere."""

from collections.abc import Iterator, Sequence

import msgspec

from ostler.tools.editing.line_search import HunkNotPlaced, LineSearcher, Tolerance
from ostler.tools.editing.patch_types import Hunk, PatchLine
from ostler.tools.editing.text_lines import BLANKS
from ostler.tools.editing.text_match import find_indent_shift

_TOLERANCES: tuple[Tolerance, ...] = ("exact", "trailing blanks", "indentation")
_FUZZ = 2  # lines of context, at each end, that may be others by now


class PlacedHunk(msgspec.Struct, frozen=True):
    """A hunk's lines that count, the index they begin at, and what was needed to place them."""

    start: int
    lines: tuple[PatchLine, ...]
    removed_indent: str = ""
    added_indent: str = ""
    notes: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        return sum(line.sign != "+" for line in self.lines)


def place_hunk(hunk: Hunk, searcher: LineSearcher, min_index: int, drift: int) -> PlacedHunk:
    """The place of a hunk behind `floor`, when hunks before it were found `drift` lines further down than they said."""
    after = _index_after_anchors(hunk, searcher, min_index)
    if not hunk.old_lines:
        return _place_insertion(hunk, searcher, after)
    stated = _stated_index(hunk, searcher, min_index, drift)
    if stated is not None:
        return PlacedHunk(stated, hunk.lines)
    for tolerance in _TOLERANCES:
        found = _find_unique(hunk, hunk.lines, searcher, tolerance, min_index, after)
        if found is not None:
            return _make_placed(hunk.lines, searcher, found, tolerance)
    for lines in _reduce_context(hunk):
        for tolerance in _TOLERANCES[:2]:
            found = _find_unique(hunk, lines, searcher, tolerance, min_index, after)
            if found is not None:
                left = len(hunk.lines) - len(lines)
                note = f"{left} {'line' if left == 1 else 'lines'} of context not as in the file"
                return _make_placed(lines, searcher, found, tolerance, (note,))
    raise HunkNotPlaced("its lines are not in the file")


def _stated_index(hunk: Hunk, searcher: LineSearcher, min_index: int, drift: int) -> int | None:
    """The place the hunk names, if its very lines are there."""
    wanted = [line.text for line in hunk.old_lines]
    at = hunk.start - 1 + drift if hunk.start else -1
    fits = at >= min_index and searcher.matches_at(wanted, at) and _fits_end(hunk.lines, searcher, at + len(wanted))
    return at if fits else None


def _index_after_anchors(hunk: Hunk, searcher: LineSearcher, min_index: int) -> int | None:
    """The index behind the hunk's anchors; None when it has none, or the first of them is not the only one."""
    at: int | None = None
    for anchor in hunk.anchors:
        here = min_index if at is None else at
        found = searcher.find_places([anchor], "exact", here) or searcher.find_places([anchor], "indentation", here)
        if not found:
            raise HunkNotPlaced(f"the line of its anchor, {anchor[:120]!r}, is not in the file")
        if at is None and len(found) > 1:
            return None
        at = found[0] + 1
    return at


def _place_insertion(hunk: Hunk, searcher: LineSearcher, after_anchor: int | None) -> PlacedHunk:
    """Lines without surroundings go behind their anchor, or to the end in the form that means it so."""
    if after_anchor is not None:
        return PlacedHunk(after_anchor, hunk.lines)
    if hunk.anchors:
        raise HunkNotPlaced("the line of its anchor is there more than once")
    if hunk.start is None or not searcher.contents:
        return PlacedHunk(len(searcher.contents), hunk.lines)
    raise HunkNotPlaced("it has no line of context to find its place by")


def _find_unique(
    hunk: Hunk,
    lines: Sequence[PatchLine],
    searcher: LineSearcher,
    tolerance: Tolerance,
    min_index: int,
    after_anchor: int | None,
) -> int | None:
    """The one place of some of a hunk's lines by a tolerance, None for none; several are refused."""
    wanted = [line.text for line in lines if line.sign != "+"]
    found = searcher.find_places(wanted, tolerance, min_index if after_anchor is None else after_anchor)
    fitting = [at for at in found if _fits_end(lines, searcher, at + len(wanted))]
    at_end = len(searcher.contents) - len(wanted)
    if hunk.at_end and at_end in fitting:
        return at_end
    if after_anchor is not None and fitting:
        return fitting[0]
    if len(fitting) > 1:
        raise HunkNotPlaced("its lines are in the file more than once", fitting)
    return fitting[0] if fitting else None


def _fits_end(lines: Sequence[PatchLine], searcher: LineSearcher, end: int) -> bool:
    """A line without a line end can only be the last one."""
    return end == len(searcher.contents) or all(line.end for line in lines)


def _reduce_context(hunk: Hunk) -> Iterator[tuple[PatchLine, ...]]:
    """The hunk without one or more lines of context at its ends."""
    most_before, most_behind = _removable_context(hunk.lines), _removable_context(hunk.lines[::-1])
    choices = [
        (less + more, less, more) for less in range(most_before + 1) for more in range(most_behind + 1) if less + more
    ]
    for _, less, more in sorted(choices):
        lines = hunk.lines[less : len(hunk.lines) - more]
        if any(line.text.strip() for line in lines if line.sign != "+"):
            yield lines


def _removable_context(lines: Sequence[PatchLine]) -> int:
    """How many lines at the beginning may be other ones: the line next to a change must stay, unless it is blank."""
    context = next(index for index, line in enumerate(lines) if line.sign != " ")
    blank = context > 0 and not lines[context - 1].text.strip()
    return min(_FUZZ, context if blank else max(context - 1, 0))


def _make_placed(
    lines: tuple[PatchLine, ...], searcher: LineSearcher, index: int, tolerance: Tolerance, notes: tuple[str, ...] = ()
) -> PlacedHunk:
    if tolerance == "exact":
        return PlacedHunk(index, lines, notes=notes)
    notes = (f"matched: {tolerance}", *notes)
    if tolerance == "trailing blanks":
        return PlacedHunk(index, lines, notes=notes)
    wanted = [line.text for line in lines if line.sign != "+"]
    cut, add = find_indent_shift(wanted, list(searcher.contents[index : index + len(wanted)])) or ("", "")
    if not all(line.text.startswith(cut) for line in lines if line.text.strip(BLANKS)):
        raise HunkNotPlaced(
            f"its lines stand at line {index + 1} indented otherwise, and its new lines cannot be shifted so"
        )
    return PlacedHunk(index, lines, cut, add, notes)
