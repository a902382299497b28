"""The hunks of a change, gone through one by one: which of them a person wants."""

from collections.abc import Sequence

from ostler.core.display import DisplayDiff
from ostler.text.hunks import split_hunks


class HunkPicker:
    """Several diffs, hunk by hunk, each with the name of its file."""

    def __init__(self, diffs: Sequence[DisplayDiff]) -> None:
        self._hunks = [(f"{diff.path}, {diff.operation}", hunk) for diff in diffs for hunk in split_hunks(diff.diff)]
        self._choices: list[bool] = []

    def __len__(self) -> int:
        return len(self._hunks)

    @property
    def current(self) -> tuple[int, int, str, str]:
        """The number of the hunk that is to be chosen next, how many there are, whose it is, and what it is."""
        return len(self._choices) + 1, len(self._hunks), *self._hunks[len(self._choices)]

    def choose(self, accept: bool) -> bool:
        """Take it or leave it out; whether that was the last."""
        self._choices.append(accept)
        return len(self._choices) == len(self._hunks)

    @property
    def last_choice(self) -> str:
        """What was said of the hunk before."""
        return ("left out", "taken")[self._choices[-1]] if self._choices else ""

    @property
    def selected(self) -> tuple[int, ...]:
        """The wanted ones, counted from 1."""
        return tuple(number for number, wanted in enumerate(self._choices, 1) if wanted)

    @property
    def all_selected(self) -> bool:
        return all(self._choices)
