"""A file's lines as a hunk's place is looked for in them: exactly, bar trailing blanks, bar a shift of indentation."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Literal

from ostler.tools.editing.text_lines import BLANKS
from ostler.tools.editing.text_match import find_indent_shift

Tolerance = Literal["exact", "trailing blanks", "indentation"]
_MAX_PLACES = 100
_MAX_LINES = 500_000


class HunkNotPlaced(Exception):
    """Why a hunk has no place; `rivals` are the indexes that are equally good."""

    def __init__(self, reason: str, candidates: Sequence[int] = ()) -> None:
        super().__init__(reason)
        self.reason = reason
        self.candidates = candidates


class LineSearcher:
    """Lines that are searched many times."""

    def __init__(self, contents: Sequence[str]) -> None:
        self.contents = contents
        self._views: dict[Tolerance, tuple[str, list[int]]] = {}

    def matches_at(self, expected: Sequence[str], index: int) -> bool:
        """Whether the very lines stand at an index."""
        return index >= 0 and list(self.contents[index : index + len(expected)]) == list(expected)

    def find_places(self, expected: Sequence[str], tolerance: Tolerance, min_index: int) -> list[int]:
        """The indexes from `floor` on where the lines stand; not more than it takes to know that they are many."""
        found: list[int] = []
        left = _MAX_LINES
        for at in self._candidates(expected, tolerance, min_index):
            left -= len(expected)
            if tolerance != "indentation" or find_indent_shift(
                list(expected), list(self.contents[at : at + len(expected)])
            ):
                found.append(at)
            if len(found) >= _MAX_PLACES:
                break
            if left < 0:
                raise HunkNotPlaced("its lines nearly fit in too many places to tell them apart")
        return found

    def _candidates(self, expected: Sequence[str], tolerance: Tolerance, min_index: int) -> Iterator[int]:
        text, starts = self._view(tolerance)
        needle = "\n".join(["", *(_normalize(line, tolerance) for line in expected), ""])
        at = text.find(needle, starts[min_index])
        while at >= 0:
            yield bisect_left(starts, at)
            at = text.find(needle, at + 1)

    def _view(self, tolerance: Tolerance) -> tuple[str, list[int]]:
        """The lines as a tolerance sees them, a line feed before each and after all, and where each begins with it."""
        if tolerance not in self._views:
            seen = [_normalize(line, tolerance) for line in self.contents]
            starts = [0, *accumulate(len(line) + 1 for line in seen)]
            self._views[tolerance] = "\n".join(["", *seen, ""]), starts
        return self._views[tolerance]


def _normalize(line: str, tolerance: Tolerance) -> str:
    if tolerance == "exact":
        return line
    return line.rstrip(BLANKS) if tolerance == "trailing blanks" else line.strip(BLANKS)
