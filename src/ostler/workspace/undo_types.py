"""The words of undo: what a turn changed, what a way back would do, and what it cannot reach."""

from typing import Literal

import msgspec


class UncoveredPath(msgspec.Struct, frozen=True):
    """A path that cannot be undone, or will not be, and why."""

    path: str
    reason: str


class Coverage(msgspec.Struct, frozen=True):
    """What could be brought back if the turn that begins now changed it; `uncovered` names what could not."""

    files: int
    uncovered: tuple[UncoveredPath, ...] = ()


class ChangedPath(msgspec.Struct, frozen=True):
    """One path a turn changed."""

    path: str
    kind: Literal["created", "modified", "deleted"]


class UndoableTurn(msgspec.Struct, frozen=True):
    """A turn that can be undone: which, when it began, and the paths it changed."""

    turn_id: str
    started_at: float
    paths: tuple[str, ...]


class TurnChanges(msgspec.Struct, frozen=True):
    """All that changed during a turn, whatever changed it."""

    turn_id: str
    changed: tuple[ChangedPath, ...] = ()


class UndoPlan(msgspec.Struct, frozen=True):
    """What an undo (or a redo) would do; nothing is touched until it is carried out.

    `conflicts` were changed since the turn and stay as they are; `uncovered` were never kept.
    """

    turn_id: str
    direction: Literal["undo", "redo"]
    restore: tuple[str, ...] = ()
    delete: tuple[str, ...] = ()
    conflicts: tuple[UncoveredPath, ...] = ()
    uncovered: tuple[UncoveredPath, ...] = ()


class UndoResult(msgspec.Struct, frozen=True):
    """What was done, and what was left because it changed at the last moment or could not be written."""

    restored: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    skipped: tuple[UncoveredPath, ...] = ()
