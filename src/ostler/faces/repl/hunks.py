"""The hunks of a change, gone through one by one: which of them a person wants."""

from collections.abc import Sequence

from ostler.text.hunks import hunks_of
from ostler.vocabulary.display import DiffShown


class Hunks:
    """Several diffs, hunk by hunk, each with the name of its file."""

    def __init__(self, diffs: Sequence[DiffShown]) -> None:
        self._hunks = [(f"{diff.path}, {diff.operation}", hunk) for diff in diffs for hunk in hunks_of(diff.diff)]
        self._wanted: list[bool] = []

    def __len__(self) -> int:
        return len(self._hunks)

    @property
    def now(self) -> tuple[int, int, str, str]:
        """The number of the hunk that is to be chosen next, how many there are, whose it is, and what it is."""
        return len(self._wanted) + 1, len(self._hunks), *self._hunks[len(self._wanted)]

    def choose(self, wanted: bool) -> bool:
        """Take it or leave it out; whether that was the last."""
        self._wanted.append(wanted)
        return len(self._wanted) == len(self._hunks)

    @property
    def last(self) -> str:
        """What was said of the hunk before."""
        return ("left out", "taken")[self._wanted[-1]] if self._wanted else ""

    @property
    def taken(self) -> tuple[int, ...]:
        """The wanted ones, counted from 1."""
        return tuple(number for number, wanted in enumerate(self._wanted, 1) if wanted)

    @property
    def all_taken(self) -> bool:
        return all(self._wanted)
