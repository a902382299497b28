"""Joins sessions to the workspace's checkpoints, and whoever takes something back to both."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from ostler.app.undo_gaps import ReportedGaps
from ostler.core.errors import UsageError
from ostler.settings.home import require_home
from ostler.workspace.checkpoints import Checkpoints
from ostler.workspace.undo_types import UndoPlan


class WorkspaceUndo:
    """The undo of one workspace as a session needs it."""

    def __init__(
        self, checkpoints: Checkpoints, reported_gaps: ReportedGaps, is_busy: Callable[[], bool] = lambda: True
    ) -> None:
        """`known` is what the person was told; `busy` says whether anything may change files when no tool runs."""
        self._checkpoints = checkpoints
        self._reported_gaps = reported_gaps
        self._gaps: list[str] | None = None
        self._is_busy = is_busy
        self._turn_id = ""
        self._unsaved: dict[str, None] = {}

    async def begin(self, turn_id: str, *, files_only: bool = False) -> Sequence[str]:
        """`files_only` is not enough while a background command may change files."""
        self._turn_id = turn_id
        files_only = files_only and not self._is_busy()
        coverage = await self._checkpoints.begin(turn_id, files_only=files_only)
        gaps = [f"{gap.path} ({gap.reason})" for gap in coverage.uncovered]
        if not files_only:
            self._gaps = gaps
        return self._reported_gaps.unreported(gaps)

    async def save_before(self, paths: Sequence[str]) -> None:
        """Save paths that the workspace is about to change."""
        gaps = await self._checkpoints.save_before(paths)
        self._unsaved.update((f"{gap.path} ({gap.reason})", None) for gap in gaps)

    def progress(self) -> str:
        return self._checkpoints.progress()

    def heartbeat(self, turn_id: str) -> None:
        """Whatever is new is told with the first effect."""
        if self._gaps is not None:
            self._reported_gaps.mark_reported(self._gaps)
            self._gaps = None
        self._checkpoints.heartbeat(turn_id)

    def mark_idle(self, turn_id: str) -> None:
        if not self._is_busy():
            self._checkpoints.mark_idle(turn_id)

    async def changed_files(self) -> Sequence[str]:
        """The files that changed since this was last asked in the turn that runs, or since it began."""
        return await self._checkpoints.changed_files(self._turn_id)

    async def finish(self, turn_id: str) -> Sequence[str]:
        await self._checkpoints.finish(turn_id)
        unsaved, self._unsaved = list(self._unsaved), {}
        return unsaved

    async def discard(self, turn_id: str) -> None:
        await self._checkpoints.discard(turn_id)


def open_checkpoints(root: Path, folder: Path) -> Checkpoints:
    """The past of a workspace, kept in its folder of Ostler's home."""
    return Checkpoints(str(root), str(folder / "checkpoints"), ostler_dir=str(require_home(os.environ)))


async def make_plan(checkpoints: Checkpoints, direction: str, turn: str = "") -> UndoPlan:
    """The named turn's plan; else undo looks for the newest turn that stands, redo for the oldest that was undone.

    One of which everything was changed since is not passed over for another: its plan says so.
    """
    make = checkpoints.plan_undo if direction == "undo" else checkpoints.plan_redo
    if turn:
        return await make(turn)
    turns, undone = await checkpoints.turns(), await checkpoints.undone_turns()
    for candidate in reversed(turns) if direction == "undo" else [turn for turn in turns if turn in undone]:
        plan = await make(candidate)
        stuck = (plan.conflicts or plan.uncovered) and not (direction == "undo" and candidate in undone)
        if plan.restore or plan.delete or stuck:
            return plan
    raise UsageError(f"there is nothing to {direction} in this workspace")


async def apply_undo(checkpoints: Checkpoints, direction: str, turns: Sequence[str]) -> list[str]:
    """Carry out what turns amount to, in that order, and tell it; one that changed nothing adds nothing."""
    known = set(await checkpoints.turns()) if turns else set()
    lines: list[str] = []
    for turn in [turn for turn in turns if turn in known] if turns else [""]:
        plan = await make_plan(checkpoints, direction, turn)
        done = await checkpoints.undo(plan)
        lines += [f"restored {path}" for path in done.restored] + [f"removed  {path}" for path in done.deleted]
        lines += [f"left     {gap.path}: {gap.reason}" for gap in (*plan.conflicts, *plan.uncovered, *done.skipped)]
    return lines
