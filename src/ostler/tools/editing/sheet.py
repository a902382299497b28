"""A file's lines as a hunk's place is looked for in them: exactly, bar trailing blanks, bar a shift of indentation."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Literal

from ostler.tools.editing.ladder import shift_of
from ostler.tools.editing.lines import BLANKS

Tolerance = Literal["exact", "trailing blanks", "indentation"]
_MOST_PLACES = 100
_MOST_LINES = 500_000


class Unplaced(Exception):
    """Why a hunk has no place; `rivals` are the indexes that are equally good."""

    def __init__(self, said: str, rivals: Sequence[int] = ()) -> None:
        super().__init__(said)
        self.said = said
        self.rivals = rivals


class Sheet:
    """Lines that are searched many times."""

    def __init__(self, contents: Sequence[str]) -> None:
        self.contents = contents
        self._views: dict[Tolerance, tuple[str, list[int]]] = {}

    def matches(self, wanted: Sequence[str], at: int) -> bool:
        """Whether the very lines stand at an index."""
        return at >= 0 and list(self.contents[at : at + len(wanted)]) == list(wanted)

    def places(self, wanted: Sequence[str], tolerance: Tolerance, floor: int) -> list[int]:
        """The indexes from `floor` on where the lines stand; not more than it takes to know that they are many."""
        found: list[int] = []
        left = _MOST_LINES
        for at in self._candidates(wanted, tolerance, floor):
            left -= len(wanted)
            if tolerance != "indentation" or shift_of(list(wanted), list(self.contents[at : at + len(wanted)])):
                found.append(at)
            if len(found) >= _MOST_PLACES:
                break
            if left < 0:
                raise Unplaced("its lines nearly fit in too many places to tell them apart")
        return found

    def _candidates(self, wanted: Sequence[str], tolerance: Tolerance, floor: int) -> Iterator[int]:
        text, starts = self._view(tolerance)
        needle = "\n".join(["", *(_seen(line, tolerance) for line in wanted), ""])
        at = text.find(needle, starts[floor])
        while at >= 0:
            yield bisect_left(starts, at)
            at = text.find(needle, at + 1)

    def _view(self, tolerance: Tolerance) -> tuple[str, list[int]]:
        """The lines as a tolerance sees them, a line feed before each and after all, and where each begins with it."""
        if tolerance not in self._views:
            seen = [_seen(line, tolerance) for line in self.contents]
            starts = [0, *accumulate(len(line) + 1 for line in seen)]
            self._views[tolerance] = "\n".join(["", *seen, ""]), starts
        return self._views[tolerance]


def _seen(line: str, tolerance: Tolerance) -> str:
    if tolerance == "exact":
        return line
    return line.rstrip(BLANKS) if tolerance == "trailing blanks" else line.strip(BLANKS)
