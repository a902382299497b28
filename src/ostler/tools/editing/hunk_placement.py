"""Determines the line where a hunk applies: at its stated line, else at the only place with its lines."""

from collections.abc import Iterator, Sequence

import msgspec

from ostler.tools.editing.line_search import HunkNotPlaced, LineSearcher, Tolerance
from ostler.tools.editing.patch_types import Hunk, PatchLine
from ostler.tools.editing.text_lines import BLANKS
from ostler.tools.editing.text_match import find_indent_shift

_TOLERANCES: tuple[Tolerance, ...] = ("exact", "trailing blanks", "indentation")
_FUZZ = 2  # context lines at each end that may differ


class PlacedHunk(msgspec.Struct, frozen=True):
    """The lines of a hunk to apply, their start index, an indentation shift, and notes about tolerances."""

    start: int
    lines: tuple[PatchLine, ...]
    removed_indent: str = ""
    added_indent: str = ""
    notes: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        return sum(line.sign != "+" for line in self.lines)


def place_hunk(hunk: Hunk, searcher: LineSearcher, min_index: int, drift: int) -> PlacedHunk:
    """Place a hunk at `min_index` or later. Raises `HunkNotPlaced`.

    `drift` is how many lines below their stated line the earlier hunks were found.
    """
    after_anchor = _index_after_anchors(hunk, searcher, min_index)
    if not hunk.old_lines:
        return _place_insertion(hunk, searcher, after_anchor)
    stated = _stated_index(hunk, searcher, min_index, drift)
    if stated is not None:
        return PlacedHunk(stated, hunk.lines)
    for tolerance in _TOLERANCES:
        index = _find_unique(hunk, hunk.lines, searcher, tolerance, min_index, after_anchor)
        if index is not None:
            return _make_placed(hunk.lines, searcher, index, tolerance)
    for lines in _reduce_context(hunk):
        for tolerance in _TOLERANCES[:2]:
            index = _find_unique(hunk, lines, searcher, tolerance, min_index, after_anchor)
            if index is not None:
                dropped = len(hunk.lines) - len(lines)
                note = f"{dropped} context {'line' if dropped == 1 else 'lines'} not as in the file"
                return _make_placed(lines, searcher, index, tolerance, (note,))
    raise HunkNotPlaced("its lines are not in the file")


def _stated_index(hunk: Hunk, searcher: LineSearcher, min_index: int, drift: int) -> int | None:
    """Return the stated index of the hunk if its exact lines are there."""
    expected = [line.text for line in hunk.old_lines]
    index = hunk.start - 1 + drift if hunk.start else -1
    if index < min_index or not searcher.matches_at(expected, index):
        return None
    return index if _fits_end(hunk.lines, searcher, index + len(expected)) else None


def _index_after_anchors(hunk: Hunk, searcher: LineSearcher, min_index: int) -> int | None:
    """Return the index after the hunk's anchors; None if it has none, or the first is ambiguous."""
    index: int | None = None
    for anchor in hunk.anchors:
        start = min_index if index is None else index
        places = searcher.find_places([anchor], "exact", start) or searcher.find_places([anchor], "indentation", start)
        if not places:
            raise HunkNotPlaced(f"its anchor line {anchor[:120]!r} is not in the file")
        if index is None and len(places) > 1:
            return None
        index = places[0] + 1
    return index


def _place_insertion(hunk: Hunk, searcher: LineSearcher, after_anchor: int | None) -> PlacedHunk:
    """Place added lines without context after their anchor, or at the end of the file if they have no line number."""
    if after_anchor is not None:
        return PlacedHunk(after_anchor, hunk.lines)
    if hunk.anchors:
        raise HunkNotPlaced("its anchor line is in the file more than once")
    if hunk.start is None or not searcher.contents:
        return PlacedHunk(len(searcher.contents), hunk.lines)
    raise HunkNotPlaced("it has no context line to place it by")


def _find_unique(
    hunk: Hunk,
    lines: Sequence[PatchLine],
    searcher: LineSearcher,
    tolerance: Tolerance,
    min_index: int,
    after_anchor: int | None,
) -> int | None:
    """Return the only place of the lines, or None. Raises `HunkNotPlaced` if there are several."""
    expected = [line.text for line in lines if line.sign != "+"]
    places = searcher.find_places(expected, tolerance, min_index if after_anchor is None else after_anchor)
    fitting = [index for index in places if _fits_end(lines, searcher, index + len(expected))]
    at_end = len(searcher.contents) - len(expected)
    if hunk.at_end and at_end in fitting:
        return at_end
    if after_anchor is not None and fitting:
        return fitting[0]
    if len(fitting) > 1:
        raise HunkNotPlaced("its lines are in the file more than once", fitting)
    return fitting[0] if fitting else None


def _fits_end(lines: Sequence[PatchLine], searcher: LineSearcher, end: int) -> bool:
    """Return whether the lines can end there; a line without a line ending can only be the last one."""
    return end == len(searcher.contents) or all(line.end for line in lines)


def _reduce_context(hunk: Hunk) -> Iterator[tuple[PatchLine, ...]]:
    """Yield the hunk without one or more context lines at its ends, fewest first."""
    max_before, max_after = _removable_context(hunk.lines), _removable_context(hunk.lines[::-1])
    choices = [
        (before + after, before, after)
        for before in range(max_before + 1)
        for after in range(max_after + 1)
        if before + after
    ]
    for _, before, after in sorted(choices):
        lines = hunk.lines[before : len(hunk.lines) - after]
        if any(line.text.strip() for line in lines if line.sign != "+"):
            yield lines


def _removable_context(lines: Sequence[PatchLine]) -> int:
    """Return how many leading lines may be dropped: the line next to a change must match, unless it is blank."""
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
    expected = [line.text for line in lines if line.sign != "+"]
    removed, added = find_indent_shift(expected, list(searcher.contents[index : index + len(expected)])) or ("", "")
    if not all(line.text.startswith(removed) for line in lines if line.text.strip(BLANKS)):
        raise HunkNotPlaced(
            f"its lines are at line {index + 1} with other indentation, and its new lines cannot be shifted to match"
        )
    return PlacedHunk(index, lines, removed, added, notes)
