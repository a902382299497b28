"""What a patch makes of the files of a workspace, worked out without changing any."""

import asyncio
from collections.abc import Sequence

import msgspec

from ostler.core.errors import PathError, ToolError
from ostler.core.protocols import FileChange, TextFile, Workspace
from ostler.tools.editing.hunk_apply import PatchResult, apply_hunks
from ostler.tools.editing.patch_types import FilePatch

_LARGE_TEXT = 200_000
_MAX_NOTES = 20


class PatchPlan(msgspec.Struct, frozen=True):
    """The changes a patch amounts to, and what is worth saying of them."""

    changes: tuple[FileChange, ...]
    notes: tuple[str, ...]


async def plan_patch(patches: Sequence[FilePatch], workspace: Workspace) -> PatchPlan:
    """Every file patch in order, each on what those before it leave; refused as a whole when one does not apply."""
    planner = _Planner(workspace)
    failures: list[ToolError] = []
    for patch in patches:
        try:
            await planner.add(patch)
        except PathError:
            raise
        except ToolError as failure:
            failures.append(failure)
    if failures:
        said = "\n".join(failure.fault.message for failure in failures[:5])
        raise ToolError(f"{said}\nnothing was changed", code=failures[0].fault.code)
    changes = tuple(planner.changes())
    if not changes:
        raise ToolError("the patch leaves every file as it is", code="bad_patch")
    more = [f"({len(planner.notes) - _MAX_NOTES} more of this kind)"] if len(planner.notes) > _MAX_NOTES else []
    return PatchPlan(changes, (*planner.notes[:_MAX_NOTES], *more))


def resolve_patch_paths(patches: Sequence[FilePatch], workspace: Workspace) -> list[FilePatch]:
    """The patches with their paths made certain by what is there; refused where they cannot be."""
    made: set[str] = set()
    done: list[FilePatch] = []
    for patch in patches:
        done.append(_resolve_patch_path(patch, workspace, made))
        made.add(done[-1].new_path or done[-1].path)
    return done


def _resolve_patch_path(patch: FilePatch, workspace: Workspace, created: set[str]) -> FilePatch:
    def there(path: str) -> bool:
        place = workspace.resolve(path) if path else None
        return path in created or (place is not None and (place.exists or not place.in_workspace))

    if patch.operation in ("create", "copy") or there(patch.path):
        return patch
    if there(patch.alternative_path):
        return msgspec.structs.replace(patch, path=patch.alternative_path)
    if there(patch.old_path):
        said = (
            f"the patch names {patch.old_path} before and {patch.path} after; give both headers the name of the file to "
            "change, or say `rename from` and `rename to`"
        )
        raise ToolError(said, code="bad_patch")
    fresh = bool(patch.hunks) and all(hunk.start == 0 and not hunk.old_lines for hunk in patch.hunks)
    if patch.operation == "update" and fresh:
        return msgspec.structs.replace(patch, operation="create")
    raise PathError("not_found", patch.path, "there is no such file", hint="a new file is patched from /dev/null")


class _PlannedFile:
    """A file on its way: where it was, where it will be (empty for nowhere), and its text if that is known."""

    def __init__(self, origin: str, path: str, text: str | None = None) -> None:
        self.origin = origin
        self.path = path
        self.text = text
        self.file: TextFile | None = None
        self.executable: bool | None = None
        self.like = ""


class _Planner:
    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._files: list[_PlannedFile] = []
        self._by_path: dict[str, _PlannedFile] = {}
        self.notes: list[str] = []

    async def add(self, patch: FilePatch) -> None:
        if patch.operation == "create":
            document = self._create(patch.path, _new_file_content(patch))
        elif patch.operation == "copy":
            source = self._find(patch.path)
            before = await self._load_text(source)
            document = self._create(patch.new_path, before)
            document.like = source.origin
        else:
            document = self._find(patch.path)
        if patch.operation != "create":
            await self._apply_patch(document, patch)
        if patch.executable is not None:
            document.executable = patch.executable

    def changes(self) -> list[FileChange]:
        return [change for document in self._files if (change := _file_change(document)) is not None]

    async def _apply_patch(self, planned_file: _PlannedFile, patch: FilePatch) -> None:
        if patch.hunks:
            planned_file.text = await self._apply_hunks(planned_file, patch)
        if patch.operation == "delete":
            if not patch.without_content and await self._load_text(planned_file):
                said = "the patch deletes it without showing all of its lines, which only *** Delete File: may do"
                raise ToolError(f"{patch.path}: {said}", code="rejected")
            planned_file.path = ""
        elif patch.operation == "rename" and self._key(patch.new_path) != self._key(planned_file.path):
            self._check_free(patch.new_path)
            self._by_path[self._key(patch.new_path)] = planned_file
            planned_file.path = patch.new_path

    async def _apply_hunks(self, planned_file: _PlannedFile, patch: FilePatch) -> str:
        before = await self._load_text(planned_file)
        shown = patch.new_path or patch.path
        if len(before) > _LARGE_TEXT:
            made: PatchResult = await asyncio.to_thread(apply_hunks, shown, before, patch.hunks)
        else:
            made = apply_hunks(shown, before, patch.hunks)
        self.notes += made.notes
        return made.text

    async def _load_text(self, planned_file: _PlannedFile) -> str:
        if planned_file.text is None:
            planned_file.file = await self._workspace.read_for_edit(planned_file.origin)
            planned_file.text = planned_file.file.text
        return planned_file.text

    def _create(self, path: str, text: str) -> _PlannedFile:
        gone = self._by_path.get(self._key(path))
        if gone is not None and not gone.path and gone.file is not None:
            gone.path, gone.text = path, text  # deleted before in this patch: its place is taken again
            return gone
        self._check_free(path)
        document = _PlannedFile("", path, text)
        self._files.append(document)
        self._by_path[self._key(path)] = document
        return document

    def _find(self, path: str) -> _PlannedFile:
        key = self._key(path)
        document = self._by_path.get(key)
        if document is None:
            document = self._by_path[key] = _PlannedFile(path, path)
            self._files.append(document)
        if self._key(document.path or ".") != key:
            raise PathError("not_found", path, "an earlier part of the patch takes it away")
        return document

    def _check_free(self, path: str) -> None:
        """Refuse a name that something has, unless the patch takes it away."""
        document = self._by_path.get(self._key(path))
        taken = (
            self._workspace.resolve(path).exists
            if document is None
            else self._key(document.path or ".") == self._key(path)
        )
        if taken:
            hint = "to change it, give a hunk with its lines; to replace it whole, use write"
            raise PathError("already_exists", path, "something is already there", hint=hint)

    def _key(self, path: str) -> str:
        return self._workspace.resolve(path).absolute


def _new_file_content(patch: FilePatch) -> str:
    lines = [line for hunk in patch.hunks for line in hunk.lines]
    if any(line.sign != "+" for line in lines):
        raise ToolError(f"{patch.path}: each line of a new file must begin with +", code="bad_patch")
    return "".join(line.text + line.end for line in lines)


def _file_change(planned_file: _PlannedFile) -> FileChange | None:
    """What becomes of a document, None for nothing."""
    base = planned_file.file.version if planned_file.file else ""
    if not planned_file.path:
        return FileChange(planned_file.origin, base_version=base, delete=True) if planned_file.origin else None
    if not planned_file.origin:
        return FileChange(
            planned_file.path, planned_file.text, executable=planned_file.executable, template_path=planned_file.like
        )
    to = planned_file.path if planned_file.path != planned_file.origin else ""
    same = planned_file.file is None or planned_file.text == planned_file.file.text
    if same and not to and planned_file.executable is None:
        return None
    return FileChange(planned_file.origin, planned_file.text, base, to, executable=planned_file.executable)
