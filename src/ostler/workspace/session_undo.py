"""Connects sessions and the undo command to the workspace's checkpoints."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from ostler.core.errors import UsageError
from ostler.settings.home import require_home
from ostler.workspace.change_detector import ChangeDetector
from ostler.workspace.checkpoints import Checkpoints
from ostler.workspace.undo_gaps import ReportedGaps
from ostler.workspace.undo_types import UndoDirection, UndoPlan

SessionUndo: TypeAlias = "WorkspaceUndo | ChangeDetector"


class WorkspaceUndo:
    """Implements the `Undo` protocol of a session with checkpoints."""

    def __init__(
        self, checkpoints: Checkpoints, reported_gaps: ReportedGaps, is_busy: Callable[[], bool] = lambda: True
    ) -> None:
        """`reported_gaps` are known to the user; `is_busy` returns whether background commands may change files."""
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
        uncovered = await self._checkpoints.begin(turn_id, files_only=files_only)
        gaps = [f"{gap.path} ({gap.reason})" for gap in uncovered]
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
        """Mark a side effect; the first one marks the gaps as reported."""
        if self._gaps is not None:
            self._reported_gaps.mark_reported(self._gaps)
            self._gaps = None
        self._checkpoints.heartbeat(turn_id)

    def mark_idle(self, turn_id: str) -> None:
        if not self._is_busy():
            self._checkpoints.mark_idle(turn_id)

    async def changed_files(self) -> Sequence[str]:
        """Return the files changed since the last call in this turn, or since its start."""
        return await self._checkpoints.changed_files(self._turn_id)

    async def finish(self, turn_id: str) -> Sequence[str]:
        await self._checkpoints.finish(turn_id)
        unsaved, self._unsaved = list(self._unsaved), {}
        return unsaved

    async def discard(self, turn_id: str) -> None:
        await self._checkpoints.discard(turn_id)


def open_checkpoints(root: Path, folder: Path) -> Checkpoints:
    """Open the checkpoints of a workspace, stored in its project folder."""
    return Checkpoints(str(root), str(folder / "checkpoints"), ostler_dir=str(require_home(os.environ)))


async def make_plan(
    checkpoints: Checkpoints, direction: UndoDirection, turn: str = "", session_id: str = ""
) -> UndoPlan:
    """Return the plan of the named turn, or of the session's newest turn to undo or its oldest undone turn to redo.

    Without a session, the turns of all sessions are considered. A turn whose files all changed since is not skipped:
    its plan has the conflicts. Raises `UsageError` if there is no such turn.
    """
    if turn:
        return await checkpoints.plan(turn, direction)
    other_turn = ""
    turns, undone = await checkpoints.turns(), await checkpoints.undone_turns()
    for candidate in reversed(turns) if direction == "undo" else [turn for turn in turns if turn in undone]:
        plan = await checkpoints.plan(candidate, direction)
        has_conflicts = (plan.conflicts or plan.uncovered) and not (direction == "undo" and candidate in undone)
        if not (plan.restore or plan.delete or has_conflicts):
            continue
        if not session_id or session_of(candidate) == session_id:
            return plan
        other_turn = other_turn or candidate
    raise _nothing_to_do(direction, session_id if turns else "", other_turn)


def session_of(turn: str) -> str:
    """Return the id of the session of a turn with a checkpoint."""
    return turn.partition("/")[0]


def _nothing_to_do(direction: UndoDirection, session_id: str, other_turn: str) -> UsageError:
    """Return the error; another session's turn must be named, because the user may not think of that session."""
    place = f"session {session_id}" if session_id else "this workspace"
    hint = f"the last turn of another session: `ostler {direction} {other_turn}`" if other_turn else ""
    return UsageError(f"nothing to {direction} in {place}", hint=hint)


async def apply_undo(
    checkpoints: Checkpoints, direction: UndoDirection, turns: Sequence[str], session_id: str = ""
) -> list[str]:
    """Undo or redo turns in the given order, or else the last one, and return a line for each path."""
    known = set(await checkpoints.turns()) if turns else set()
    lines: list[str] = []
    for turn in [turn for turn in turns if turn in known] if turns else [""]:
        plan = await make_plan(checkpoints, direction, turn, session_id)
        result = await checkpoints.undo(plan)
        lines += [f"restored {path}" for path in result.restored] + [f"removed  {path}" for path in result.deleted]
        lines += [f"skipped  {gap.path}: {gap.reason}" for gap in (*plan.conflicts, *plan.uncovered, *result.skipped)]
    return lines
