"""What a patch makes of the files of a workspace, worked out without changing any."""

import asyncio
from collections.abc import Sequence

import msgspec

from ostler.tools.editing.hunks import Patched, patched
from ostler.tools.editing.patches import FilePatch
from ostler.vocabulary.errors import PathRefused, ToolFailure
from ostler.vocabulary.seams import FileChange, Ground, TextFile

_LARGE = 200_000
_TOLD = 20


class Plan(msgspec.Struct, frozen=True):
    """The changes a patch amounts to, and what is worth saying of them."""

    changes: tuple[FileChange, ...]
    notes: tuple[str, ...]


async def plan(patches: Sequence[FilePatch], ground: Ground) -> Plan:
    """Every file patch in order, each on what those before it leave; refused as a whole when one does not apply."""
    planner = _Planner(ground)
    failures: list[ToolFailure] = []
    for patch in patches:
        try:
            await planner.add(patch)
        except PathRefused:
            raise
        except ToolFailure as failure:
            failures.append(failure)
    if failures:
        said = "\n".join(failure.fault.message for failure in failures[:5])
        raise ToolFailure(f"{said}\nnothing was changed", code=failures[0].fault.code)
    changes = tuple(planner.changes())
    if not changes:
        raise ToolFailure("the patch leaves every file as it is", code="bad_patch")
    more = [f"({len(planner.notes) - _TOLD} more of this kind)"] if len(planner.notes) > _TOLD else []
    return Plan(changes, (*planner.notes[:_TOLD], *more))


def settled(patches: Sequence[FilePatch], ground: Ground) -> list[FilePatch]:
    """The patches with their paths made certain by what is there; refused where they cannot be."""
    made: set[str] = set()
    done: list[FilePatch] = []
    for patch in patches:
        done.append(_settled(patch, ground, made))
        made.add(done[-1].to or done[-1].path)
    return done


def _settled(patch: FilePatch, ground: Ground, made: set[str]) -> FilePatch:
    def there(path: str) -> bool:
        place = ground.place(path) if path else None
        return path in made or (place is not None and (place.exists or not place.inside))

    if patch.operation in ("create", "copy") or there(patch.path):
        return patch
    if there(patch.path_else):
        return msgspec.structs.replace(patch, path=patch.path_else)
    if there(patch.before):
        said = (
            f"the patch names {patch.before} before and {patch.path} after; give both headers the name of the file to "
            "change, or say `rename from` and `rename to`"
        )
        raise ToolFailure(said, code="bad_patch")
    fresh = bool(patch.hunks) and all(hunk.start == 0 and not hunk.old for hunk in patch.hunks)
    if patch.operation == "update" and fresh:
        return msgspec.structs.replace(patch, operation="create")
    raise PathRefused("not_found", patch.path, "there is no such file", hint="a new file is patched from /dev/null")


class _Document:
    """A file on its way: where it was, where it will be (empty for nowhere), and its text if that is known."""

    def __init__(self, origin: str, path: str, text: str | None = None) -> None:
        self.origin = origin
        self.path = path
        self.text = text
        self.file: TextFile | None = None
        self.executable: bool | None = None
        self.like = ""


class _Planner:
    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._documents: list[_Document] = []
        self._at: dict[str, _Document] = {}
        self.notes: list[str] = []

    async def add(self, patch: FilePatch) -> None:
        if patch.operation == "create":
            document = self._new(patch.path, _content(patch))
        elif patch.operation == "copy":
            source = self._old(patch.path)
            before = await self._text(source)
            document = self._new(patch.to, before)
            document.like = source.origin
        else:
            document = self._old(patch.path)
        if patch.operation != "create":
            await self._change(document, patch)
        if patch.executable is not None:
            document.executable = patch.executable

    def changes(self) -> list[FileChange]:
        return [change for document in self._documents if (change := _change(document)) is not None]

    async def _change(self, document: _Document, patch: FilePatch) -> None:
        if patch.hunks:
            document.text = await self._patched(document, patch)
        if patch.operation == "delete":
            if not patch.unseen and await self._text(document):
                said = "the patch deletes it without showing all of its lines, which only *** Delete File: may do"
                raise ToolFailure(f"{patch.path}: {said}", code="rejected")
            document.path = ""
        elif patch.operation == "rename" and self._key(patch.to) != self._key(document.path):
            self._claim(patch.to)
            self._at[self._key(patch.to)] = document
            document.path = patch.to

    async def _patched(self, document: _Document, patch: FilePatch) -> str:
        before = await self._text(document)
        shown = patch.to or patch.path
        if len(before) > _LARGE:
            made: Patched = await asyncio.to_thread(patched, shown, before, patch.hunks)
        else:
            made = patched(shown, before, patch.hunks)
        self.notes += made.notes
        return made.text

    async def _text(self, document: _Document) -> str:
        if document.text is None:
            document.file = await self._ground.read_to_change(document.origin)
            document.text = document.file.text
        return document.text

    def _new(self, path: str, text: str) -> _Document:
        gone = self._at.get(self._key(path))
        if gone is not None and not gone.path and gone.file is not None:
            gone.path, gone.text = path, text  # deleted before in this patch: its place is taken again
            return gone
        self._claim(path)
        document = _Document("", path, text)
        self._documents.append(document)
        self._at[self._key(path)] = document
        return document

    def _old(self, path: str) -> _Document:
        key = self._key(path)
        document = self._at.get(key)
        if document is None:
            document = self._at[key] = _Document(path, path)
            self._documents.append(document)
        if self._key(document.path or ".") != key:
            raise PathRefused("not_found", path, "an earlier part of the patch takes it away")
        return document

    def _claim(self, path: str) -> None:
        """Refuse a name that something has, unless the patch takes it away."""
        document = self._at.get(self._key(path))
        taken = (
            self._ground.place(path).exists if document is None else self._key(document.path or ".") == self._key(path)
        )
        if taken:
            hint = "to change it, give a hunk with its lines; to replace it whole, use write"
            raise PathRefused("already_exists", path, "something is already there", hint=hint)

    def _key(self, path: str) -> str:
        return self._ground.place(path).absolute


def _content(patch: FilePatch) -> str:
    lines = [line for hunk in patch.hunks for line in hunk.lines]
    if any(line.sign != "+" for line in lines):
        raise ToolFailure(f"{patch.path}: each line of a new file must begin with +", code="bad_patch")
    return "".join(line.text + line.end for line in lines)


def _change(document: _Document) -> FileChange | None:
    """What becomes of a document, None for nothing."""
    base = document.file.version if document.file else ""
    if not document.path:
        return FileChange(document.origin, base=base, delete=True) if document.origin else None
    if not document.origin:
        return FileChange(document.path, document.text, executable=document.executable, like=document.like)
    to = document.path if document.path != document.origin else ""
    same = document.file is None or document.text == document.file.text
    if same and not to and document.executable is None:
        return None
    return FileChange(document.origin, document.text, base, to, executable=document.executable)
