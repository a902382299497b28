"""The undo of a workspace, as a session uses it."""

from collections.abc import Sequence
from typing import Protocol

# The start of an uncovered path that is the workspace itself: nothing can be undone. The reason and ")" follow.
WHOLE_WORKSPACE = ". ("


class Undo(Protocol):
    """Saves what a turn changes, so that it can be undone."""

    async def begin(self, turn_id: str, *, files_only: bool = False) -> Sequence[str]:
        """Take a checkpoint and return the paths that undo will not cover.

        With `files_only`, only the files that the workspace itself changes are saved, each before it changes. Call it
        again without `files_only` before anything else can change files.
        """

    def progress(self) -> str:
        """Return how far a running `begin` is, for the user."""

    def heartbeat(self, turn_id: str) -> None:
        """Mark a side effect. If the turn crashes, changes after the last mark are not attributed to it."""

    def mark_idle(self, turn_id: str) -> None:
        """Mark that no side effect is running until the next `heartbeat`, so that changes can be scanned."""

    async def finish(self, turn_id: str) -> Sequence[str]:
        """Save the changes of a turn. Return further paths that undo cannot restore, with reasons."""

    async def discard(self, turn_id: str) -> None:
        """Drop the checkpoint of a turn without side effects."""
