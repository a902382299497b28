"""The words of undo: what a turn changed, what a way back would do, and what it cannot reach."""

from typing import Literal

import msgspec


class Gap(msgspec.Struct, frozen=True):
    """A path that cannot be undone, or will not be, and why."""

    path: str
    reason: str


class Coverage(msgspec.Struct, frozen=True):
    """What could be brought back if the turn that begins now changed it; `uncovered` names what could not."""

    files: int
    uncovered: tuple[Gap, ...] = ()


class Changed(msgspec.Struct, frozen=True):
    """One path a turn changed."""

    path: str
    kind: Literal["created", "modified", "deleted"]


class Kept(msgspec.Struct, frozen=True):
    """A turn that can be undone: which, when it began, and the paths it changed."""

    turn: str
    at: float
    paths: tuple[str, ...]


class Changes(msgspec.Struct, frozen=True):
    """All that changed during a turn, whatever changed it."""

    turn: str
    changed: tuple[Changed, ...] = ()


class UndoPlan(msgspec.Struct, frozen=True):
    """What an undo (or a redo) would do; nothing is touched until it is carried out.

    `conflicts` were changed since the turn and stay as they are; `uncovered` were never kept.
    """

    turn: str
    direction: Literal["undo", "redo"]
    restore: tuple[str, ...] = ()
    delete: tuple[str, ...] = ()
    conflicts: tuple[Gap, ...] = ()
    uncovered: tuple[Gap, ...] = ()


class Undone(msgspec.Struct, frozen=True):
    """What was done, and what was left because it changed at the last moment or could not be written."""

    restored: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    left: tuple[Gap, ...] = ()
