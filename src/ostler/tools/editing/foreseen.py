"""What was worked out while it was asked what a call needs, kept until it runs: that, and nothing else, is done.

A failure that was found shows what is in a file. So the call is put to the policy as what it then amounts to, a read,
and only when that is allowed is the failure told.
"""

from collections.abc import Sequence
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from ostler.vocabulary.display import Display
from ostler.vocabulary.errors import PathRefused, ToolFailure
from ostler.vocabulary.permission import Need, Permission
from ostler.vocabulary.seams import FileChange, Ground, Place, Written

_TELLING = frozenset({"no_match", "ambiguous", "rejected", "changed_on_disk"})
W = TypeVar("W")


class Foreseen(Generic[W]):
    """What came of one tool's calls when they were looked at first, by their parameters."""

    def __init__(self) -> None:
        self._found: WeakKeyDictionary[Any, W | ToolFailure] = WeakKeyDictionary()

    def instead(self, params: Any, failure: ToolFailure, title: str, places: Sequence[Place]) -> Permission:
        """What a call needs that will fail; a failure that shows nothing of a file is raised at once."""
        if failure.fault.code not in _TELLING:
            raise failure
        self._found[params] = failure
        return Permission(title, reads(places), Display("cannot be applied, and will change nothing"))

    def keep(self, params: Any, worked_out: W) -> None:
        """What was shown of a call is what it will do."""
        self._found[params] = worked_out

    def take(self, params: Any) -> W:
        """What was worked out for a call; or raise what was foreseen of it."""
        found = self._found.pop(params, None)
        if found is None:
            raise ToolFailure("nothing was worked out for this call; make it again", code="not_looked_at")
        if isinstance(found, ToolFailure):
            raise found
        return found


async def apply_as_shown(ground: Ground, changes: Sequence[FileChange], *, dry_run: bool = False) -> Sequence[Written]:
    """Make changes that somebody has seen, on the very files they were worked out from."""
    try:
        return await ground.apply(changes, dry_run=dry_run)
    except PathRefused as refusal:
        if refusal.fault.code != "changed_on_disk":
            raise
        why = "it was changed after this call was looked at, and nothing was written"
        raise PathRefused("changed_on_disk", refusal.path, why, hint="read it again and make the call anew") from None


def reads(places: Sequence[Place]) -> tuple[Need, ...]:
    """The needs of reading some files of the workspace."""
    return tuple(Need("read", shown, always="*") for shown in dict.fromkeys(place.shown for place in places))
