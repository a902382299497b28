"""Computes the file changes of a patch without writing anything."""

import asyncio
from collections.abc import Sequence

import msgspec

from ostler.core.errors import PathError, ToolError
from ostler.core.protocols import FileChange, TextFile, Workspace
from ostler.tools.editing.hunk_apply import PatchResult, apply_hunks
from ostler.tools.editing.line_search import SearchBudget
from ostler.tools.editing.patch_types import FilePatch

# Larger texts and patches are handled in a thread.
_LARGE_TEXT = 20_000
_MANY_HUNKS = 20
_MAX_FAILURES = 5
_MAX_NOTES = 20


class PatchPlan(msgspec.Struct, frozen=True):
    """The file changes of a patch, and notes about them."""

    changes: tuple[FileChange, ...]
    notes: tuple[str, ...]


async def plan_patch(patches: Sequence[FilePatch], workspace: Workspace) -> PatchPlan:
    """Compute the changes of all file patches in order. Raises `ToolError` if one of them does not apply."""
    planner = _Planner(workspace)
    errors: list[ToolError] = []
    for patch in patches:
        try:
            await planner.add(patch)
        except PathError:
            raise
        except ToolError as error:
            errors.append(error)
            if len(errors) == _MAX_FAILURES:
                break
    if errors:
        message = "\n".join(error.fault.message for error in errors)
        raise ToolError(f"{message}\nnothing was changed", code=errors[0].fault.code)
    changes = tuple(planner.changes())
    if not changes:
        raise ToolError("the patch changes nothing", code="bad_patch")
    more = [f"({len(planner.notes) - _MAX_NOTES} more of this kind)"] if len(planner.notes) > _MAX_NOTES else []
    return PatchPlan(changes, (*planner.notes[:_MAX_NOTES], *more))


def resolve_patch_paths(patches: Sequence[FilePatch], workspace: Workspace) -> list[FilePatch]:
    """Choose the path of each patch by which files exist. Raises `ToolError` or `PathError` if none does."""
    created: set[str] = set()
    resolved: list[FilePatch] = []
    for patch in patches:
        resolved.append(_resolve_patch_path(patch, workspace, created))
        created.add(resolved[-1].new_path or resolved[-1].path)
    return resolved


def _resolve_patch_path(patch: FilePatch, workspace: Workspace, created: set[str]) -> FilePatch:
    def exists(path: str) -> bool:
        place = workspace.resolve(path) if path else None
        return path in created or (place is not None and (place.exists or not place.in_workspace))

    if patch.operation in ("create", "copy") or exists(patch.path):
        return patch
    if exists(patch.alternative_path):
        return msgspec.structs.replace(patch, path=patch.alternative_path)
    if exists(patch.old_path):
        message = (
            f"the patch names {patch.old_path} before and {patch.path} after; use the same name in both headers, "
            "or add `rename from` and `rename to`"
        )
        raise ToolError(message, code="bad_patch")
    is_new = bool(patch.hunks) and all(hunk.start == 0 and not hunk.old_lines for hunk in patch.hunks)
    if patch.operation == "update" and is_new:
        return msgspec.structs.replace(patch, operation="create")
    raise PathError("not_found", patch.path, "there is no such file", hint="a new file is patched from /dev/null")


class _PlannedFile(msgspec.Struct):
    """A file in the plan: its old path, its new path (empty if deleted), and its text if loaded."""

    origin: str
    path: str
    text: str | None = None
    file: TextFile | None = None
    executable: bool | None = None
    template_path: str = ""


class _Planner:
    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._budget = SearchBudget()
        self._files: list[_PlannedFile] = []
        self._by_path: dict[str, _PlannedFile] = {}
        self.notes: list[str] = []

    async def add(self, patch: FilePatch) -> None:
        if patch.operation == "create":
            planned_file = self._create(patch.path, _new_file_content(patch))
        elif patch.operation == "copy":
            source = self._find(patch.path)
            before = await self._load_text(source)
            planned_file = self._create(patch.new_path, before)
            planned_file.template_path = source.origin
        else:
            planned_file = self._find(patch.path)
        if patch.operation != "create":
            await self._apply_patch(planned_file, patch)
        if patch.executable is not None:
            planned_file.executable = patch.executable

    def changes(self) -> list[FileChange]:
        return [change for planned_file in self._files if (change := _file_change(planned_file)) is not None]

    async def _apply_patch(self, planned_file: _PlannedFile, patch: FilePatch) -> None:
        if patch.hunks:
            planned_file.text = await self._apply_hunks(planned_file, patch)
        if patch.operation == "delete":
            if not patch.without_content and await self._load_text(planned_file):
                message = "the patch deletes it without all of its lines, which only *** Delete File: can do"
                raise ToolError(f"{patch.path}: {message}", code="rejected")
            planned_file.path = ""
        elif patch.operation == "rename" and self._key(patch.new_path) != self._key(planned_file.path):
            self._check_free(patch.new_path)
            self._by_path[self._key(patch.new_path)] = planned_file
            planned_file.path = patch.new_path

    async def _apply_hunks(self, planned_file: _PlannedFile, patch: FilePatch) -> str:
        before = await self._load_text(planned_file)
        path = patch.new_path or patch.path
        if len(before) > _LARGE_TEXT or len(patch.hunks) > _MANY_HUNKS:
            result: PatchResult = await asyncio.to_thread(apply_hunks, path, before, patch.hunks, self._budget)
        else:
            result = apply_hunks(path, before, patch.hunks, self._budget)
        self.notes += result.notes
        return result.text

    async def _load_text(self, planned_file: _PlannedFile) -> str:
        if planned_file.text is None:
            planned_file.file = await self._workspace.read_for_edit(planned_file.origin)
            planned_file.text = planned_file.file.text
        return planned_file.text

    def _create(self, path: str, text: str) -> _PlannedFile:
        deleted = self._by_path.get(self._key(path))
        if deleted is not None and not deleted.path and deleted.file is not None:
            deleted.path, deleted.text = path, text  # the patch deletes it and creates it again
            return deleted
        self._check_free(path)
        planned_file = _PlannedFile("", path, text)
        self._files.append(planned_file)
        self._by_path[self._key(path)] = planned_file
        return planned_file

    def _find(self, path: str) -> _PlannedFile:
        key = self._key(path)
        planned_file = self._by_path.get(key)
        if planned_file is None:
            planned_file = self._by_path[key] = _PlannedFile(path, path)
            self._files.append(planned_file)
        if self._key(planned_file.path or ".") != key:
            raise PathError("not_found", path, "an earlier part of the patch removes it")
        return planned_file

    def _check_free(self, path: str) -> None:
        """Raise `PathError` if the path exists and the patch does not remove it."""
        planned_file = self._by_path.get(self._key(path))
        exists = (
            self._workspace.resolve(path).exists
            if planned_file is None
            else self._key(planned_file.path or ".") == self._key(path)
        )
        if exists:
            hint = "to change it, give a hunk with its lines; to replace it, use write"
            raise PathError("already_exists", path, "it already exists", hint=hint)

    def _key(self, path: str) -> str:
        return self._workspace.resolve(path).absolute


def _new_file_content(patch: FilePatch) -> str:
    lines = [line for hunk in patch.hunks for line in hunk.lines]
    if any(line.sign != "+" for line in lines):
        raise ToolError(f"{patch.path}: each line of a new file must begin with +", code="bad_patch")
    return "".join(line.text + line.end for line in lines)


def _file_change(planned_file: _PlannedFile) -> FileChange | None:
    """Return the change of a file, or None if it does not change."""
    base = planned_file.file.version if planned_file.file else ""
    if not planned_file.path:
        return FileChange(planned_file.origin, base_version=base, delete=True) if planned_file.origin else None
    if not planned_file.origin:
        return FileChange(
            planned_file.path,
            planned_file.text,
            executable=planned_file.executable,
            template_path=planned_file.template_path,
        )
    new_path = planned_file.path if planned_file.path != planned_file.origin else ""
    same_text = planned_file.file is None or planned_file.text == planned_file.file.text
    if same_text and not new_path and planned_file.executable is None:
        return None
    return FileChange(planned_file.origin, planned_file.text, base, new_path, executable=planned_file.executable)
