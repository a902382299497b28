"""The tool that applies a patch to several files at once."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from ostler.tools.changes import changes_result, changes_shown
from ostler.tools.declared import Declared
from ostler.tools.editing.chosen import chosen
from ostler.tools.editing.foreseen import Foreseen, apply_as_shown, reads
from ostler.tools.places import writing
from ostler.vocabulary.errors import ToolFailure
from ostler.vocabulary.permission import Need, Permission
from ostler.vocabulary.seams import Ground, Place, ToolContext
from ostler.vocabulary.tools import ToolResult

if TYPE_CHECKING:
    from ostler.tools.editing.patches import FilePatch
    from ostler.tools.editing.plan import Plan


class PatchParams(msgspec.Struct, weakref=True, eq=False):
    patch: str
    dry_run: bool = False
    hunks: list[int] | None = None


class Patch(Declared[PatchParams]):
    name = "patch"
    kind = "edit"
    params = PatchParams
    unlisted = ("hunks",)

    def __init__(self) -> None:
        self._foreseen: Foreseen[Plan] = Foreseen()

    async def permission(self, params: PatchParams, ground: Ground) -> Permission:
        from ostler.tools.editing.plan import plan  # brings the patch readers along that only a patch needs

        patches = _patches(params, ground)
        places = _places(patches, ground)
        title = _title(places)
        if not all(place.inside for place in places):
            return Permission(title, _needs(patches, ground))
        try:
            async with ground.writing():
                planned = await plan(patches, ground)
                if params.hunks is not None:
                    changes = tuple(await chosen(params.hunks, planned.changes, ground))
                    planned = msgspec.structs.replace(planned, changes=changes)
                written = await ground.apply(planned.changes, dry_run=True)
        except ToolFailure as failure:
            return self._foreseen.instead(params, failure, title, places)
        self._foreseen.keep(params, planned)
        preview = changes_shown(written, planned.notes)
        return Permission(title, reads(places) if params.dry_run else _needs(patches, ground), preview)

    async def run(self, params: PatchParams, context: ToolContext) -> ToolResult:
        planned = self._foreseen.take(params)
        written = await apply_as_shown(context.ground, planned.changes, dry_run=params.dry_run)
        return changes_result(written, planned.notes, dry_run=params.dry_run)


def _patches(params: PatchParams, ground: Ground) -> list["FilePatch"]:
    from ostler.tools.editing.plan import settled
    from ostler.tools.editing.reading import read_patch

    return settled(read_patch(params.patch), ground)


def _title(places: Sequence[Place]) -> str:
    names = list(dict.fromkeys(place.shown for place in places))
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"patch {', '.join(names[:3])}{more}"


def _places(patches: Sequence["FilePatch"], ground: Ground) -> list[Place]:
    return [ground.place(path) for patch in patches for path in (patch.path, patch.to) if path]


def _needs(patches: Sequence["FilePatch"], ground: Ground) -> tuple[Need, ...]:
    """`patch` for every file; `delete` for one that goes away; `read` for one whose content gets another name."""
    needs: dict[Need, None] = {}
    for patch in patches:
        if patch.operation != "copy" or not ground.place(patch.path).inside:
            needs |= dict.fromkeys(writing("patch", patch.path, ground)[1])
        if patch.operation in ("delete", "rename"):
            needs |= dict.fromkeys(writing("delete", patch.path, ground)[1])
        if patch.to:
            needs |= dict.fromkeys(writing("patch", patch.to, ground)[1])
            needs |= dict.fromkeys(reads([ground.place(patch.path)]))
    return tuple(needs)
