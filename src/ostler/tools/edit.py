"""Tool that replaces text in a file."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import UNSET, UnsetType

from ostler.core.errors import ToolError
from ostler.core.permission import Permission
from ostler.core.protocols import FileChange, ToolContext, Workspace
from ostler.core.tools import ToolResult
from ostler.tools.base_tool import BaseTool
from ostler.tools.change_display import change_result, changes_display
from ostler.tools.editing.planned_changes import PlannedChanges, apply_planned, needs_to_match
from ostler.tools.editing.replacement import Replacement
from ostler.tools.path_needs import write_needs

if TYPE_CHECKING:
    from ostler.tools.editing.replacements import EditResult

_LARGE_TEXT = 200_000


class EditParams(msgspec.Struct, weakref=True, eq=False):
    path: str
    old: str | UnsetType = UNSET
    new: str | UnsetType = UNSET
    replace_all: bool = False
    edits: Annotated[
        list[Replacement], msgspec.Meta(description="several replacements, in order, instead of old and new")
    ] = []
    hunks: list[int] | None = None


class EditTool(BaseTool[EditParams]):
    name = "edit"
    params = EditParams
    unlisted = ("hunks",)

    def __init__(self) -> None:
        self._planned: PlannedChanges[tuple[FileChange, EditResult]] = PlannedChanges()
        self._written_hashes: dict[str, int] = {}

    async def permission(self, params: EditParams, workspace: Workspace) -> Permission:
        place, needs = write_needs("edit", params.path, workspace)
        title = f"edit {place.display_path}"
        replacements = _requested_replacements(params)
        if not place.in_workspace:
            return Permission(title, needs)
        try:
            async with workspace.exclusive():
                change, result = await _compute_change(params.path, replacements, workspace)
                if params.hunks is not None:
                    from ostler.tools.editing.selected_hunks import select_hunks

                    (change,) = await select_hunks(params.hunks, [change], workspace)
                written = await workspace.apply([change], dry_run=True)
        except ToolError as error:
            return self._planned.permission_for_failure(params, error, title, [place])
        self._planned.store(params, (change, result))
        return Permission(title, (*needs, *needs_to_match([place])), changes_display(written, _notes(result)))

    async def run(self, params: EditParams, context: ToolContext) -> ToolResult:
        workspace = context.workspace
        change, result = self._planned.pop(params)
        async with workspace.exclusive():
            if params.hunks is None and await self._is_own_edit(change, workspace):
                change, result = await _compute_change(params.path, _requested_replacements(params), workspace)
            (written,) = await apply_planned(workspace, [change])
        self._written_hashes[change.path] = hash(change.text)
        return change_result(
            written, _notes(result), replacements=result.count, matched=list(result.rules) or ["exact"]
        )

    async def _is_own_edit(self, change: FileChange, workspace: Workspace) -> bool:
        """Return whether the file changed since the preview, but only by another edit of this tool."""
        if change.path not in self._written_hashes:
            return False
        file = await workspace.read_for_edit(change.path)
        return file.version != change.base_version and hash(file.text) == self._written_hashes[change.path]


def _requested_replacements(params: EditParams) -> list[Replacement]:
    """Return the replacements of a call, from `old` and `new` or from `edits`."""
    single = params.old is not UNSET or params.new is not UNSET
    if params.edits and not single:
        return params.edits
    if params.edits:
        raise ToolError("give either old and new, or edits, not both", code="bad_arguments")
    if isinstance(params.old, UnsetType) or isinstance(params.new, UnsetType):
        missing = "new" if params.new is UNSET and single else "old"
        raise ToolError(f"{missing} is missing; give old and new, or a list of edits", code="bad_arguments")
    return [Replacement(params.old, params.new, params.replace_all)]


async def _compute_change(
    path: str, replacements: list[Replacement], workspace: Workspace
) -> tuple[FileChange, "EditResult"]:
    """Compute the change of a file. An empty `old` fills a file that is empty or does not exist."""
    from ostler.tools.editing.replacements import (  # imports the matcher that only edits need
        EditResult,
        apply_replacements,
    )

    fills = len(replacements) == 1 and not replacements[0].old and bool(replacements[0].new)
    if fills and not workspace.resolve(path).exists:
        return FileChange(path, replacements[0].new), EditResult(replacements[0].new, 1, ())
    file = await workspace.read_for_edit(path)
    if fills and not file.text:
        result = EditResult(replacements[0].new, 1, ())
    elif len(file.text) > _LARGE_TEXT:
        result = await asyncio.to_thread(apply_replacements, file.path, file.text, replacements)
    else:
        result = apply_replacements(file.path, file.text, replacements)
    return FileChange(path, result.text, file.version), result


def _notes(result: "EditResult") -> list[str]:
    notes = [f"matched: {rule}" for rule in result.rules]
    return [*notes, f"{result.count} places"] if result.count > 1 else notes
