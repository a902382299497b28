"""Lets the user accept or skip the hunks of a change one by one."""

from collections.abc import Sequence

from ostler.core.display import DisplayDiff
from ostler.text.hunks import split_hunks


class HunkPicker:
    """The hunks of several diffs, each with its file, and the choices so far."""

    def __init__(self, diffs: Sequence[DisplayDiff]) -> None:
        self._hunks = [
            (f"{diff.path}, would be {diff.operation}", hunk) for diff in diffs for hunk in split_hunks(diff.diff)
        ]
        self._choices: list[bool] = []

    def __len__(self) -> int:
        return len(self._hunks)

    @property
    def current(self) -> tuple[int, int, str, str]:
        """The next hunk: its number, the number of hunks, its file and operation, and its text."""
        return len(self._choices) + 1, len(self._hunks), *self._hunks[len(self._choices)]

    def choose(self, accept: bool) -> bool:
        """Accept or skip the current hunk. Return whether it was the last."""
        self._choices.append(accept)
        return len(self._choices) == len(self._hunks)

    def go_back(self) -> bool:
        """Take back the last choice. Return whether there was one."""
        had_choice = bool(self._choices)
        del self._choices[-1:]
        return had_choice

    @property
    def is_last(self) -> bool:
        """Whether the choice for the current hunk completes the answer."""
        return len(self._choices) + 1 == len(self._hunks)

    @property
    def last_choice(self) -> str:
        """The choice for the previous hunk."""
        return ("skipped", "accepted")[self._choices[-1]] if self._choices else ""

    @property
    def selected(self) -> tuple[int, ...]:
        """Numbers of the accepted hunks, starting at 1."""
        return tuple(number for number, accepted in enumerate(self._choices, 1) if accepted)

    @property
    def all_selected(self) -> bool:
        return all(self._choices)
