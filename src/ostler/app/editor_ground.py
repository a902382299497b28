"""The folder as an editor has it: texts with their unsaved changes, written through the editor."""

import asyncio
import os
from collections.abc import Sequence

import msgspec

from ostler.app.editor_shell import EditorShell
from ostler.app.grounds import SessionGround
from ostler.faces.editor.premises import Editor
from ostler.vocabulary.errors import PathRefused
from ostler.vocabulary.seams import FileChange, TextFile, Written
from ostler.wire.jsonrpc import PeerGone, RpcError

READ_SECONDS = 10.0  # an editor that hangs leaves the reading to the disk


class EditorGround(SessionGround):
    """Reads fall back to the disk where the editor has nothing to tell; what it will not write is refused.

    Only a change of one text goes through the editor: several at once must happen together or not at all, which only
    the disk can promise.
    """

    def __init__(self, root: str, shell: EditorShell, editor: Editor, *, read_anywhere: bool) -> None:
        super().__init__(root, shell, read_anywhere=read_anywhere)
        self._theirs = shell
        self._editor = editor
        self._shown: dict[str, str] = {}
        self._written: dict[str, str] = {}

    async def read_text(self, path: str) -> TextFile:
        file = await super().read_text(path)
        shown = await self._buffer(path, file)
        self._shown[self.place(path).absolute] = shown.text
        return shown

    async def read_to_change(self, path: str) -> TextFile:
        file = await self._on_disk(path)
        shown = await self._buffer(path, file)
        seen = self._shown.get(self.place(path).absolute, shown.text)
        if shown.text not in (file.text, seen):
            raise PathRefused(
                "changed_on_disk", file.path, "it was changed in the editor since you read it", hint="read it again"
            )
        return shown

    async def write_text(self, path: str, text: str, *, base: str | None = None) -> Written:
        """A file that is there is changed as the editor shows it, and keeps its newlines."""
        if base is not None or not await self._through_editor(path):
            return await super().write_text(path, text, base=base)
        if not self.place(path).exists:
            return (await self.apply([FileChange(path, text)]))[0]
        file = await self.read_to_change(path)
        text = _unix(text).replace("\n", "\r\n") if file.newline == "\r\n" else text
        return (await self.apply([FileChange(path, text, file.version)]))[0]

    async def apply(self, changes: Sequence[FileChange], *, dry_run: bool = False) -> Sequence[Written]:
        alone = changes[0] if len(changes) == 1 and _only_text(changes[0]) else None
        if alone is None or not await self._through_editor(alone.path):
            for each in changes:
                await self._refuse_unsaved(each.path)
            return await super().apply(changes, dry_run=dry_run)
        told = await self._foretold(alone, (await super().apply(changes, dry_run=True))[0])
        return [told if dry_run else await self._write(alone, told)]

    async def confined(self) -> bool:
        return not self._theirs.theirs and await super().confined()

    def _alike(self) -> SessionGround:
        return EditorGround(self.root, self._theirs.another(), self._editor, read_anywhere=self._read_anywhere)

    # -- inside ----------------------------------------------------------------------------------------------------

    async def _buffer(self, path: str, file: TextFile) -> TextFile:
        """The text as the editor has it, in the file's own newlines."""
        if not self._editor.can.fs.read_text_file or not _plain(file):
            return file
        try:
            async with asyncio.timeout(READ_SECONDS):
                answer = await self._editor.ask("fs/read_text_file", path=self.place(path).absolute)
        except (RpcError, PeerGone, TimeoutError):
            return file
        text = answer.get("content") if isinstance(answer, dict) else None
        if not isinstance(text, str) or _unix(text) == _unix(file.text):
            return file
        text = _unix(text).replace("\n", "\r\n") if file.newline == "\r\n" else text
        return msgspec.structs.replace(file, text=text, size=len(text.encode()))

    async def _on_disk(self, path: str) -> TextFile:
        """As we last saw it; what we let the editor write may have been saved late."""
        try:
            return await super().read_to_change(path)
        except PathRefused as refusal:
            if refusal.fault.code != "changed_on_disk":
                raise
            file = await super().read_text(path)
            if file.text != self._written.get(self.place(path).absolute):
                raise
            return file

    async def _through_editor(self, path: str) -> bool:
        if not self._editor.can.fs.write_text_file:
            return False
        return not self.place(path).exists or _plain(await self._on_disk(path))

    async def _write(self, change: FileChange, told: Written) -> Written:
        place, text = self.place(change.path), change.text or ""
        try:
            await self._editor.ask("fs/write_text_file", path=place.absolute, content=text)
        except (RpcError, PeerGone) as error:
            raise PathRefused("denied_by_system", place.shown, f"the editor did not write it: {error}") from None
        self._written[place.absolute] = self._shown[place.absolute] = text
        if os.path.exists(place.absolute):
            await super().read_text(change.path)
        return told

    async def _foretold(self, change: FileChange, told: Written) -> Written:
        """The change as the person sees it, which is another where the editor has something unsaved."""
        if not self.place(change.path).exists:
            return told
        file = await self._on_disk(change.path)
        before = (await self.read_to_change(change.path)).text
        if before == file.text:
            return told
        from ostler.text.diff import unified

        diff = unified(before, change.text or "", told.path)
        return msgspec.structs.replace(told, diff=diff.text, additions=diff.additions, deletions=diff.deletions)

    async def _refuse_unsaved(self, path: str) -> None:
        if not self.place(path).exists or not self._editor.can.fs.read_text_file:
            return
        try:
            file = await self._on_disk(path)
        except PathRefused:
            return  # no text, so no buffer; or the change itself is refused in a moment
        if (await self._buffer(path, file)).text != file.text:
            raise PathRefused("changed_on_disk", file.path, "it is unsaved in the editor", hint="save it first")


def _only_text(change: FileChange) -> bool:
    return change.text is not None and not (change.to or change.delete or change.like) and change.executable is None


def _plain(file: TextFile) -> bool:
    """Whether an editor and we would read it alike."""
    return file.encoding in ("utf-8", "ascii") and not file.bom


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n")
