"""Caches the change computed for the approval request, so that exactly this change is written when the call runs.

Some errors reveal the content of a file. A call with such an error needs permission to read the file, and the error is
reported only if that is allowed.
"""

from collections.abc import Sequence
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from ostler.core.display import Display
from ostler.core.errors import PathError, ToolError
from ostler.core.permission import Need, Permission
from ostler.core.protocols import FileChange, ResolvedPath, Workspace, WriteResult

_REVEALING_CODES = frozenset({"no_match", "ambiguous", "rejected", "changed_on_disk"})
W = TypeVar("W")


class PlannedChanges(Generic[W]):
    """The computed changes or errors of one tool's calls, by their parameters."""

    def __init__(self) -> None:
        self._planned: WeakKeyDictionary[Any, W | ToolError] = WeakKeyDictionary()

    def permission_for_failure(
        self, params: Any, error: ToolError, title: str, places: Sequence[ResolvedPath]
    ) -> Permission:
        """Store the error and return the permission to read; raise it if it reveals no file content."""
        if error.fault.code not in _REVEALING_CODES:
            raise error
        self._planned[params] = error
        return Permission(title, needs_to_read(places), Display("cannot be applied; nothing will change"))

    def store(self, params: Any, planned: W) -> None:
        self._planned[params] = planned

    def pop(self, params: Any) -> W:
        """Return the change of a call, or raise its stored error."""
        planned = self._planned.pop(params, None)
        if planned is None:
            raise ToolError("no change was computed for this call; repeat it", code="not_looked_at")
        if isinstance(planned, ToolError):
            raise planned
        return planned


async def apply_planned(
    workspace: Workspace, changes: Sequence[FileChange], *, dry_run: bool = False
) -> Sequence[WriteResult]:
    """Apply planned changes. Raises `PathError` if the files changed since they were planned."""
    try:
        return await workspace.apply(changes, dry_run=dry_run)
    except PathError as error:
        if error.fault.code != "changed_on_disk":
            raise
        reason = "it changed after this call was checked; nothing was written"
        raise PathError("changed_on_disk", error.path, reason, hint="read it again and repeat the call") from None


def needs_to_read(places: Sequence[ResolvedPath]) -> tuple[Need, ...]:
    """Return the needs of reading these files of the workspace."""
    paths = dict.fromkeys(place.display_path for place in places)
    return tuple(Need("read", path, rule_pattern="*") for path in paths)


def needs_to_match(places: Sequence[ResolvedPath]) -> tuple[Need, ...]:
    """Return the needs of comparing text with existing files: a change that can be made shows what they contain."""
    paths = dict.fromkeys(place.display_path for place in places if place.exists)
    return tuple(Need("read", path, rule_pattern=path, implied=True) for path in paths)
