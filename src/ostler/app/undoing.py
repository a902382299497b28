"""Joins sessions to the workspace's checkpoints, and whoever takes something back to both."""

from collections.abc import Callable, Sequence
from pathlib import Path

from ostler.vocabulary.errors import UsageError
from ostler.workspace.changes import UndoPlan
from ostler.workspace.checkpoints import Checkpoints


class WorkspaceUndo:
    """The undo of one workspace as a session needs it."""

    def __init__(self, checkpoints: Checkpoints, busy: Callable[[], bool] = lambda: True) -> None:
        """`busy` says whether anything may still change files when no tool runs."""
        self._checkpoints = checkpoints
        self._busy = busy
        self._turn = ""

    async def begin(self, turn_id: str) -> Sequence[str]:
        self._turn = turn_id
        coverage = await self._checkpoints.begin(turn_id)
        return [f"{gap.path} ({gap.reason})" for gap in coverage.uncovered]

    def living(self, turn_id: str) -> None:
        self._checkpoints.living(turn_id)

    def resting(self, turn_id: str) -> None:
        if not self._busy():
            self._checkpoints.resting(turn_id)

    async def news(self) -> Sequence[str]:
        """The files that changed since this was last asked in the turn that runs, or since it began."""
        return await self._checkpoints.news(self._turn)

    async def finish(self, turn_id: str) -> None:
        await self._checkpoints.finish(turn_id)


def checkpoints(root: Path, folder: Path) -> Checkpoints:
    """The past of a workspace, kept in its folder of Ostler's home."""
    return Checkpoints(str(root), str(folder / "checkpoints"))


async def plan_of(past: Checkpoints, direction: str, turn: str = "") -> UndoPlan:
    """The named turn's plan; else undo looks for the newest turn that stands, redo for the oldest that does not.

    A turn of which everything was changed since is passed over, unless there is no other.
    """
    make = past.plan_undo if direction == "undo" else past.plan_redo
    if turn:
        return await make(turn)
    turns = await past.turns()
    stuck: UndoPlan | None = None
    for candidate in reversed(turns) if direction == "undo" else turns:
        plan = await make(candidate)
        if plan.restore or plan.delete:
            return plan
        stuck = stuck or (plan if direction == "undo" and plan.conflicts else None)
    if stuck:
        return stuck
    raise UsageError(f"there is nothing to {direction} in this workspace")


async def take_back(past: Checkpoints, direction: str, turns: Sequence[str]) -> list[str]:
    """Carry out what turns amount to, in that order, and tell it; one that changed nothing adds nothing."""
    known = set(await past.turns()) if turns else set()
    lines: list[str] = []
    for turn in [turn for turn in turns if turn in known] if turns else [""]:
        plan = await plan_of(past, direction, turn)
        done = await past.undo(plan)
        lines += [f"restored {path}" for path in done.restored] + [f"removed  {path}" for path in done.deleted]
        lines += [f"left     {gap.path}: {gap.reason}" for gap in (*plan.conflicts, *plan.uncovered, *done.left)]
    return lines
