"""Workspace that reads unsaved editor buffers and writes through the editor."""

import asyncio
import os
from collections.abc import Sequence

import msgspec

from ostler.app.editor_shell import EditorShell
from ostler.app.session_workspace import SessionWorkspace
from ostler.core.errors import PathError
from ostler.core.protocols import FileChange, TextFile, WriteResult
from ostler.frontends.acp_agent.editor_client import EditorClient
from ostler.wire.jsonrpc import PeerClosed, RpcError

READ_TIMEOUT = 10.0  # then the file is read from disk


class EditorWorkspace(SessionWorkspace):
    """A workspace behind an editor. Reads fall back to the disk; a failed write raises `PathError`.

    Only the change of a single text file goes through the editor. Several changes must all succeed or fail together,
    so they are written to disk.
    """

    def __init__(self, root: str, shell: EditorShell, editor: EditorClient, *, read_anywhere: bool) -> None:
        super().__init__(root, shell, read_anywhere=read_anywhere)
        self._editor_shell = shell
        self._editor = editor
        self._last_read: dict[str, str] = {}
        self._last_written: dict[str, str] = {}

    async def read_text(self, path: str) -> TextFile:
        file = await super().read_text(path)
        buffer = await self._read_buffer(path, file)
        self._last_read[self.resolve(path).absolute] = buffer.text
        return buffer

    async def read_for_edit(self, path: str) -> TextFile:
        file = await self._read_disk(path)
        buffer = await self._read_buffer(path, file)
        last_read = self._last_read.get(self.resolve(path).absolute, buffer.text)
        if buffer.text not in (file.text, last_read):
            raise PathError(
                "changed_on_disk",
                file.path,
                "the file was changed in the editor since you read it",
                hint="read it again",
            )
        return buffer

    async def write_text(self, path: str, text: str, *, base_version: str | None = None) -> WriteResult:
        """Write through the editor if possible; an existing file keeps its newlines."""
        if base_version is not None or not await self._writes_through_editor(path):
            return await super().write_text(path, text, base_version=base_version)
        if not self.resolve(path).exists:
            return (await self.apply([FileChange(path, text)]))[0]
        file = await self.read_for_edit(path)
        text = _unix_newlines(text).replace("\n", "\r\n") if file.newline == "\r\n" else text
        return (await self.apply([FileChange(path, text, file.version)]))[0]

    async def apply(self, changes: Sequence[FileChange], *, dry_run: bool = False) -> Sequence[WriteResult]:
        change = changes[0] if len(changes) == 1 and _is_text_change(changes[0]) else None
        if change is None or not await self._writes_through_editor(change.path):
            for item in changes:
                await self._check_saved(item.path)
            return await super().apply(changes, dry_run=dry_run)
        result = await self._preview(change, (await super().apply(changes, dry_run=True))[0])
        return [result if dry_run else await self._write_in_editor(change, result)]

    async def is_sandboxed(self) -> bool:
        return await super().is_sandboxed() and not self._editor_shell.runs_in_editor

    def _copy(self) -> SessionWorkspace:
        return EditorWorkspace(
            self.root, self._editor_shell.for_child(), self._editor, read_anywhere=self._read_anywhere
        )

    # -- internals -------------------------------------------------------------------------------------------------

    async def _read_buffer(self, path: str, file: TextFile) -> TextFile:
        """Return the file with the editor's text, in the file's own newlines."""
        if not self._editor.capabilities.fs.read_text_file or not _is_plain_utf8(file):
            return file
        try:
            async with asyncio.timeout(READ_TIMEOUT):
                answer = await self._editor.request("fs/read_text_file", path=self.resolve(path).absolute)
        except (RpcError, PeerClosed, TimeoutError):
            return file
        text = answer.get("content") if isinstance(answer, dict) else None
        if not isinstance(text, str) or _unix_newlines(text) == _unix_newlines(file.text):
            return file
        text = _unix_newlines(text).replace("\n", "\r\n") if file.newline == "\r\n" else text
        return msgspec.structs.replace(file, text=text, size=len(text.encode()))

    async def _read_disk(self, path: str) -> TextFile:
        """Read the file for an edit, accepting text that the editor saved for us after the last read."""
        try:
            return await super().read_for_edit(path)
        except PathError as error:
            if error.fault.code != "changed_on_disk":
                raise
            file = await super().read_text(path)
            if file.text != self._last_written.get(self.resolve(path).absolute):
                raise
            return file

    async def _writes_through_editor(self, path: str) -> bool:
        if not self._editor.capabilities.fs.write_text_file:
            return False
        return not self.resolve(path).exists or _is_plain_utf8(await self._read_disk(path))

    async def _write_in_editor(self, change: FileChange, result: WriteResult) -> WriteResult:
        resolved, text = self.resolve(change.path), change.text or ""
        await self._prepare_change([resolved.absolute])
        try:
            await self._editor.request("fs/write_text_file", path=resolved.absolute, content=text)
        except (RpcError, PeerClosed) as error:
            raise PathError(
                "denied_by_system", resolved.display_path, f"the editor did not write it: {error}"
            ) from None
        self._last_written[resolved.absolute] = self._last_read[resolved.absolute] = text
        if os.path.exists(resolved.absolute):
            await super().read_text(change.path)
        return result

    async def _preview(self, change: FileChange, result: WriteResult) -> WriteResult:
        """Return the result with the diff against the editor's text, which may have unsaved changes."""
        if not self.resolve(change.path).exists:
            return result
        file = await self._read_disk(change.path)
        current = (await self.read_for_edit(change.path)).text
        if current == file.text:
            return result
        from ostler.text.diff import unified_diff

        diff = unified_diff(current, change.text or "", result.path)
        return msgspec.structs.replace(result, diff=diff.text, additions=diff.additions, deletions=diff.deletions)

    async def _check_saved(self, path: str) -> None:
        if not self.resolve(path).exists or not self._editor.capabilities.fs.read_text_file:
            return
        try:
            file = await self._read_disk(path)
        except PathError:
            return  # not a text file, so no buffer; or the change itself fails next
        if (await self._read_buffer(path, file)).text != file.text:
            raise PathError(
                "changed_on_disk",
                file.path,
                "the file has unsaved changes in the editor",
                hint="ask the user to save it",
            )


def _is_text_change(change: FileChange) -> bool:
    return (
        change.text is not None
        and not (change.new_path or change.delete or change.template_path)
        and change.executable is None
    )


def _is_plain_utf8(file: TextFile) -> bool:
    """Return whether the editor decodes the file in the same way."""
    return file.encoding in ("utf-8", "ascii") and not file.bom


def _unix_newlines(text: str) -> str:
    return text.replace("\r\n", "\n")
