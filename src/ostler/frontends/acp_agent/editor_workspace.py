"""Workspace that reads unsaved editor buffers and changes them through the editor."""

import asyncio
from collections.abc import Sequence

import msgspec

from ostler.core.errors import PathError
from ostler.core.protocols import FileChange, TextFile, WriteResult
from ostler.frontends.acp_agent.editor_client import EditorClient
from ostler.frontends.acp_agent.editor_shell import EditorShell
from ostler.wire.jsonrpc import PeerClosed, RpcError
from ostler.workspace.file_reading import MAX_TEXT_BYTES
from ostler.workspace.session_workspace import SessionWorkspace

READ_TIMEOUT = 10.0  # then the file is read from disk


class EditorWorkspace(SessionWorkspace):
    """A workspace behind an editor.

    Only a file with unsaved text is changed through the editor; all others are written to disk, where check and use of
    a path are one step. The editor is not used while a command runs (`EditorFileGate`). Several changes must all
    succeed or fail together, so they need saved files.
    """

    def __init__(self, root: str, shell: EditorShell, editor: EditorClient, *, read_anywhere: bool) -> None:
        super().__init__(root, shell, read_anywhere=read_anywhere)
        self._editor_shell = shell
        self._editor = editor
        self._gate = shell.gate
        self._last_read: dict[str, str] = {}
        self._last_written: dict[str, str] = {}
        self._unsaved: dict[str, str] = {}
        self._disk_texts: dict[str, set[int]] = {}

    async def read_text(self, path: str) -> TextFile:
        file = await super().read_text(path)
        buffer = await self._read_buffer(path, file)
        self._last_read[self._absolute(path)] = buffer.text
        return buffer

    async def read_for_edit(self, path: str) -> TextFile:
        file = await self._read_disk(path)
        buffer = await self._read_buffer(path, file)
        last_read = self._last_read.get(self._absolute(path), buffer.text)
        if buffer.text not in (file.text, last_read):
            raise PathError(
                "changed_on_disk",
                file.path,
                "the file was changed in the editor since you read it",
                hint="read it again",
            )
        return buffer

    async def write_text(self, path: str, text: str) -> WriteResult:
        """Write unsaved text through the editor, which keeps its newlines; any other file is written to disk."""
        if not await self._is_unsaved(path):
            return await super().write_text(path, text)
        file = await self.read_for_edit(path)
        text = _unix_newlines(text).replace("\n", "\r\n") if file.newline == "\r\n" else text
        return (await self.apply([FileChange(path, text, file.version)]))[0]

    async def apply(self, changes: Sequence[FileChange], *, dry_run: bool = False) -> Sequence[WriteResult]:
        unsaved = [change for change in changes if await self._is_unsaved(change.path)]
        if not unsaved:
            return await super().apply(changes, dry_run=dry_run)
        if len(changes) > 1 or not _is_text_change(changes[0]) or not self._editor.capabilities.fs.write_text_file:
            raise _unsaved_error(self.resolve(unsaved[0].path).display_path)
        result = await self._preview(changes[0], (await super().apply(changes, dry_run=True))[0])
        return [result if dry_run else await self._write_in_editor(changes[0], result)]

    async def is_sandboxed(self) -> bool:
        return await super().is_sandboxed() and not self._editor_shell.runs_in_editor

    def _copy(self) -> SessionWorkspace:
        return EditorWorkspace(
            self.root, self._editor_shell.for_child(), self._editor, read_anywhere=self._read_anywhere
        )

    # -- internals -------------------------------------------------------------------------------------------------

    def _absolute(self, path: str) -> str:
        return self._access.locate(path)[0]

    async def _read_buffer(self, path: str, file: TextFile) -> TextFile:
        """Return the file with the editor's unsaved text, in the file's own newlines; without any, the file itself."""
        absolute = self._absolute(path)
        if not self._can_read_buffer(absolute, file):
            return file
        text = await self._request_text(path, absolute)
        if text is None or self._is_text_from_disk(absolute, text, file):
            self._unsaved.pop(absolute, None)
            return file
        text = _unix_newlines(text).replace("\n", "\r\n") if file.newline == "\r\n" else text
        self._unsaved[absolute] = text
        return msgspec.structs.replace(file, text=text, size=len(text.encode()))

    def _can_read_buffer(self, absolute: str, file: TextFile) -> bool:
        offered = self._editor.capabilities.fs.read_text_file and self._gate.is_open
        return offered and _is_plain_utf8(file) and absolute.isprintable()

    async def _request_text(self, path: str, absolute: str) -> str | None:
        """Return the editor's text of a file, or None if it has none, or if it may be the text of another file."""
        started = self._gate.started
        try:
            async with asyncio.timeout(READ_TIMEOUT):
                answer = await self._editor.request(
                    "fs/read_text_file", path=absolute, max_response_bytes=2 * MAX_TEXT_BYTES
                )
        except (RpcError, PeerClosed, TimeoutError):
            return None
        if self._gate.started != started or self._absolute(path) != absolute:
            return None
        text = answer.get("content") if isinstance(answer, dict) else None
        return text if isinstance(text, str) else None

    def _is_text_from_disk(self, absolute: str, text: str, file: TextFile) -> bool:
        """Return whether a text is on disk, or was: an editor notices only after a while that a file changed."""
        texts = self._disk_texts.setdefault(absolute, set())
        texts.add(hash(_unix_newlines(file.text)))
        return hash(_unix_newlines(text)) in texts

    async def _read_disk(self, path: str) -> TextFile:
        """Read the file for an edit, accepting text that the editor saved for us after the last read."""
        try:
            return await super().read_for_edit(path)
        except PathError as error:
            if error.fault.code != "changed_on_disk":
                raise
            file = await super().read_text(path)
            if file.text != self._last_written.get(self._absolute(path)):
                raise
            return file

    async def _is_unsaved(self, path: str) -> bool:
        """Return whether the editor has unsaved text for a file. Raises if it had, and cannot be asked now."""
        if not self.resolve(path).exists:
            return False
        try:
            file = await self._read_disk(path)
        except PathError:
            return False  # not a text file, so no buffer; or the change itself fails next
        absolute = self._absolute(path)
        if self._gate.is_open:
            return (await self._read_buffer(path, file)).text != file.text
        if self._unsaved.get(absolute, file.text) != file.text:
            raise _unsaved_error(file.path, ", which is not used while a command runs")
        return False

    async def _write_in_editor(self, change: FileChange, result: WriteResult) -> WriteResult:
        absolute, text = self._absolute(change.path), change.text or ""
        await self._prepare_change([absolute])
        if not self._gate.is_open:
            raise _unsaved_error(result.path, ", which is not used while a command runs")
        try:
            await self._gate.write(self._editor.request("fs/write_text_file", path=absolute, content=text))
        except (RpcError, PeerClosed) as error:
            raise PathError("denied_by_system", result.path, f"the editor did not write it: {error}") from None
        if self._absolute(change.path) != absolute:
            raise PathError(
                "outside_workspace",
                result.path,
                "the path changed while the editor wrote it, so the text may be in another file",
                hint="tell the user",
            )
        self._last_written[absolute] = self._last_read[absolute] = text
        self._unsaved.pop(absolute, None)
        await super().read_text(change.path)
        return result

    async def _preview(self, change: FileChange, result: WriteResult) -> WriteResult:
        """Return the result with the diff against the editor's text."""
        current = (await self.read_for_edit(change.path)).text
        from ostler.text.diff import unified_diff

        diff = unified_diff(current, change.text or "", result.path)
        return msgspec.structs.replace(result, diff=diff.text, additions=diff.additions, deletions=diff.deletions)


def _unsaved_error(path: str, detail: str = "") -> PathError:
    return PathError(
        "changed_on_disk", path, f"the file has unsaved changes in the editor{detail}", hint="ask the user to save it"
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
