"""Searches a file's lines for a hunk: exact, ignoring trailing blanks, or with shifted indentation."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Literal

from ostler.core.errors import ToolError
from ostler.tools.editing.text_lines import BLANKS
from ostler.tools.editing.text_match import find_indent_shift

Tolerance = Literal["exact", "trailing blanks", "indentation"]
_MAX_PLACES = 100
_MAX_LINES = 500_000
_MAX_PATCH_EFFORT = 3_000_000_000  # characters that are searched for all hunks of a patch
_VIEW_EFFORT = 20  # for each character of a view
_CANDIDATE_EFFORT = 2_000  # for each line that is compared


class SearchBudget:
    """The effort that placing all hunks of one patch may take, so that a patch is placed or refused in seconds."""

    def __init__(self) -> None:
        self._left = _MAX_PATCH_EFFORT

    def spend(self, effort: int) -> None:
        """Raises `ToolError` if the budget is used up."""
        self._left -= effort
        if self._left < 0:
            message = "the patch is too large to find the places of its hunks; send it in smaller parts"
            raise ToolError(message, code="rejected")


class HunkNotPlaced(Exception):
    """A hunk cannot be placed. `candidates` are the indexes if there are several."""

    def __init__(self, reason: str, candidates: Sequence[int] = ()) -> None:
        super().__init__(reason)
        self.reason = reason
        self.candidates = candidates


class LineSearcher:
    """Searches the lines of one file, with cached views."""

    def __init__(self, contents: Sequence[str], budget: SearchBudget) -> None:
        self.contents = contents
        self._budget = budget
        self._views: dict[Tolerance, tuple[str, list[int]]] = {}

    def matches_at(self, expected: Sequence[str], index: int) -> bool:
        """Return whether the exact lines are at an index."""
        return index >= 0 and list(self.contents[index : index + len(expected)]) == list(expected)

    def find_places(self, expected: Sequence[str], tolerance: Tolerance, min_index: int) -> list[int]:
        """Return the indexes of the lines from `min_index` on; at most `_MAX_PLACES`. Raises `HunkNotPlaced`."""
        places: list[int] = []
        budget = _MAX_LINES
        for index in self._candidates(expected, tolerance, min_index):
            budget -= len(expected)
            self._budget.spend(_CANDIDATE_EFFORT * len(expected))
            if tolerance != "indentation" or find_indent_shift(
                list(expected), list(self.contents[index : index + len(expected)])
            ):
                places.append(index)
            if len(places) >= _MAX_PLACES:
                break
            if budget < 0:
                raise HunkNotPlaced("its lines nearly match in too many places")
        return places

    def _candidates(self, expected: Sequence[str], tolerance: Tolerance, min_index: int) -> Iterator[int]:
        text, starts = self._view(tolerance)
        needle = "\n".join(["", *(_normalize(line, tolerance) for line in expected), ""])
        start = starts[min_index]
        while (offset := text.find(needle, start)) >= 0:
            self._budget.spend(offset - start + len(needle))
            yield bisect_left(starts, offset)
            start = offset + 1
        self._budget.spend(len(text) - start)

    def _view(self, tolerance: Tolerance) -> tuple[str, list[int]]:
        """Return the normalized lines as one text, with a newline before each and at the end, and their offsets."""
        if tolerance not in self._views:
            self._budget.spend(_VIEW_EFFORT * sum(map(len, self.contents)))
            normalized = [_normalize(line, tolerance) for line in self.contents]
            starts = [0, *accumulate(len(line) + 1 for line in normalized)]
            self._views[tolerance] = "\n".join(["", *normalized, ""]), starts
        return self._views[tolerance]


def _normalize(line: str, tolerance: Tolerance) -> str:
    if tolerance == "exact":
        return line
    return line.rstrip(BLANKS) if tolerance == "trailing blanks" else line.strip(BLANKS)
