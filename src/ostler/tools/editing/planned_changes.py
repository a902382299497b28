"""What was worked out while it was asked what a call needs, kept until it runs: that, and nothing else, is done.

A failure that was found shows what is in a file. So the call is put to the policy as what it then amounts to, a read,
and only when that is allowed is the failure told.
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
    """What came of one tool's calls when they were looked at first, by their parameters."""

    def __init__(self) -> None:
        self._planned: WeakKeyDictionary[Any, W | ToolError] = WeakKeyDictionary()

    def permission_for_failure(
        self, params: Any, failure: ToolError, title: str, places: Sequence[ResolvedPath]
    ) -> Permission:
        """What a call needs that will fail; a failure that shows nothing of a file is raised at once."""
        if failure.fault.code not in _REVEALING_CODES:
            raise failure
        self._planned[params] = failure
        return Permission(title, needs_to_read(places), Display("cannot be applied, and will change nothing"))

    def store(self, params: Any, planned: W) -> None:
        """What was shown of a call is what it will do."""
        self._planned[params] = planned

    def pop(self, params: Any) -> W:
        """What was worked out for a call; or raise what was foreseen of it."""
        found = self._planned.pop(params, None)
        if found is None:
            raise ToolError("nothing was worked out for this call; make it again", code="not_looked_at")
        if isinstance(found, ToolError):
            raise found
        return found


async def apply_planned(
    workspace: Workspace, changes: Sequence[FileChange], *, dry_run: bool = False
) -> Sequence[WriteResult]:
    """Make changes that somebody has seen, on the very files they were worked out from."""
    try:
        return await workspace.apply(changes, dry_run=dry_run)
    except PathError as refusal:
        if refusal.fault.code != "changed_on_disk":
            raise
        why = "it was changed after this call was looked at, and nothing was written"
        raise PathError("changed_on_disk", refusal.path, why, hint="read it again and make the call anew") from None


def needs_to_read(places: Sequence[ResolvedPath]) -> tuple[Need, ...]:
    """The needs of reading some files of the workspace."""
    return tuple(
        Need("read", shown, rule_pattern="*") for shown in dict.fromkeys(place.display_path for place in places)
    )
