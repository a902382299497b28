"""Value types of undo: plans, results and uncovered paths."""

from typing import Literal

import msgspec

UndoDirection = Literal["undo", "redo"]


class UncoveredPath(msgspec.Struct, frozen=True):
    """A path that undo cannot or will not restore, with the reason."""

    path: str
    reason: str


class UndoableTurn(msgspec.Struct, frozen=True):
    """A turn that can be undone, or redone if it is `undone`, with its start time and the paths it changed."""

    turn_id: str
    started_at: float
    paths: tuple[str, ...]
    undone: bool = False


class UndoPlan(msgspec.Struct, frozen=True):
    """What an undo or a redo would do.

    `conflicts` were changed after the turn and stay unchanged; the content of `uncovered` paths was not saved.
    """

    turn_id: str
    direction: UndoDirection
    restore: tuple[str, ...] = ()
    delete: tuple[str, ...] = ()
    conflicts: tuple[UncoveredPath, ...] = ()
    uncovered: tuple[UncoveredPath, ...] = ()


class UndoResult(msgspec.Struct, frozen=True):
    """The result of an undo or redo. `skipped` paths changed at the last moment or could not be written."""

    restored: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    skipped: tuple[UncoveredPath, ...] = ()
