"""Tool that applies a patch to one or more files."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from ostler.core.errors import ToolError
from ostler.core.permission import Need, Permission
from ostler.core.protocols import ResolvedPath, ToolContext, Workspace
from ostler.core.tools import ToolResult
from ostler.tools.base_tool import BaseTool
from ostler.tools.change_display import changes_display, changes_result
from ostler.tools.editing.planned_changes import PlannedChanges, apply_planned, needs_to_match, needs_to_read
from ostler.tools.path_needs import write_needs

if TYPE_CHECKING:
    from ostler.tools.editing.patch_plan import PatchPlan
    from ostler.tools.editing.patch_types import FilePatch


class PatchParams(msgspec.Struct, weakref=True, eq=False):
    patch: str
    dry_run: bool = False
    hunks: list[int] | None = None


class PatchTool(BaseTool[PatchParams]):
    name = "patch"
    params = PatchParams
    unlisted = ("hunks",)

    def __init__(self) -> None:
        self._planned: PlannedChanges[PatchPlan] = PlannedChanges()

    async def permission(self, params: PatchParams, workspace: Workspace) -> Permission:
        from ostler.tools.editing.patch_parser import parse_patch  # imported late: only patches need the parsers
        from ostler.tools.editing.patch_plan import plan_patch, resolve_patch_paths

        patches = resolve_patch_paths(parse_patch(params.patch), workspace)
        places = [workspace.resolve(path) for patch in patches for path in (patch.path, patch.new_path) if path]
        title = _title(places)
        if not all(place.in_workspace for place in places):
            return Permission(title, _needs(patches, workspace))
        try:
            async with workspace.exclusive():
                planned = await plan_patch(patches, workspace)
                if params.hunks is not None:
                    from ostler.tools.editing.selected_hunks import select_hunks

                    changes = tuple(await select_hunks(params.hunks, planned.changes, workspace))
                    planned = msgspec.structs.replace(planned, changes=changes)
                written = await workspace.apply(planned.changes, dry_run=True)
        except ToolError as error:
            return self._planned.permission_for_failure(params, error, title, places)
        self._planned.store(params, planned)
        preview = changes_display(written, planned.notes)
        needs = needs_to_read(places) if params.dry_run else (*_needs(patches, workspace), *needs_to_match(places))
        return Permission(title, needs, preview)

    async def run(self, params: PatchParams, context: ToolContext) -> ToolResult:
        planned = self._planned.pop(params)
        written = await apply_planned(context.workspace, planned.changes, dry_run=params.dry_run)
        return changes_result(written, planned.notes, dry_run=params.dry_run)


def _title(places: Sequence[ResolvedPath]) -> str:
    names = list(dict.fromkeys(place.display_path for place in places))
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"patch {', '.join(names[:3])}{more}"


def _needs(patches: Sequence["FilePatch"], workspace: Workspace) -> tuple[Need, ...]:
    """Return the needs: `patch` for all files, `delete` for removed or renamed ones, `read` for sources of new ones."""
    needs: dict[Need, None] = {}
    for patch in patches:
        if patch.operation != "copy" or not workspace.resolve(patch.path).in_workspace:
            needs |= dict.fromkeys(write_needs("patch", patch.path, workspace)[1])
        if patch.operation in ("delete", "rename"):
            needs |= dict.fromkeys(write_needs("delete", patch.path, workspace)[1])
        if patch.new_path:
            needs |= dict.fromkeys(write_needs("patch", patch.new_path, workspace)[1])
            needs |= dict.fromkeys(needs_to_read([workspace.resolve(patch.path)]))
    return tuple(needs)
