"""Commands and file requests to the editor never overlap."""

import asyncio

import pytest

from ostler.core.commands import CommandRequest
from ostler.core.errors import PathError, ToolError
from ostler.core.protocols import FileChange
from ostler.frontends.acp_agent.editor_file_gate import EditorFileGate
from ostler.frontends.acp_agent.editor_shell import EditorShell
from ostler.frontends.acp_agent.editor_workspace import EditorWorkspace
from ostler.wire.acp_requests import ClientCapabilities, FileSystemCapabilities

COMMAND = CommandRequest("true")


class FakeEditor:
    """Answers reads with `text`, and writes when `release` is set."""

    def __init__(self, text):
        self.capabilities = ClientCapabilities(FileSystemCapabilities(True, True))
        self.text = text
        self.requested, self.release = asyncio.Event(), asyncio.Event()
        self.methods = []

    async def request(self, method, **params):
        self.methods.append(method)
        self.requested.set()
        if method == "fs/write_text_file":
            await self.release.wait()
        return {"content": self.text} if method == "fs/read_text_file" else {}


@pytest.fixture
async def opened(tmp_path):
    (tmp_path / "a.txt").write_text("saved\n")
    editor = FakeEditor("unsaved\n")
    shell = EditorShell(str(tmp_path), editor, EditorFileGate(), sandbox="off")
    workspace = EditorWorkspace(str(tmp_path), shell, editor, read_anywhere=False)
    yield workspace, editor
    editor.release.set()
    await workspace.aclose()


async def write(workspace):
    file = await workspace.read_text("a.txt")
    return await workspace.apply([FileChange("a.txt", "changed\n", file.version)])


@pytest.mark.req("FS-2")
async def test_command_waits_for_a_write_even_if_its_caller_is_cancelled(opened):
    workspace, editor = opened
    writing = asyncio.ensure_future(write(workspace))
    while "fs/write_text_file" not in editor.methods:
        editor.requested.clear()
        await editor.requested.wait()
    writing.cancel()
    await asyncio.wait([writing])
    command = asyncio.ensure_future(workspace.run(COMMAND))
    assert not (await asyncio.wait([command], timeout=0.1))[0]
    editor.release.set()
    assert (await command).exit_code == 0


@pytest.mark.req("FS-2")
async def test_command_fails_if_the_editor_does_not_finish_a_write(opened, monkeypatch):
    workspace, editor = opened
    monkeypatch.setattr("ostler.frontends.acp_agent.editor_file_gate.WRITE_WAIT", 0.01)
    writing = asyncio.ensure_future(write(workspace))
    while "fs/write_text_file" not in editor.methods:
        editor.requested.clear()
        await editor.requested.wait()
    with pytest.raises(ToolError, match="has not finished writing"):
        await workspace.run(COMMAND)
    editor.release.set()
    await writing


@pytest.mark.req("FS-2")
async def test_text_that_the_editor_read_while_a_command_started_is_not_used(opened):
    workspace, editor = opened
    commands = []

    async def request(method, **params):
        commands.append(asyncio.ensure_future(workspace.run(COMMAND)))
        await asyncio.sleep(0)
        return {"content": "of another file\n"}

    editor.request = request
    assert (await workspace.read_text("a.txt")).text == "saved\n"
    await asyncio.gather(*commands)


@pytest.mark.req("FS-2", "EN-4")
async def test_command_of_a_subagent_closes_the_gate_for_its_parent(opened):
    workspace, editor = opened
    child = workspace.for_child()
    job = await child.jobs.start(CommandRequest("sleep 600"))
    assert (await workspace.read_text("a.txt")).text == "saved\n"
    assert editor.methods == []
    await child.jobs.stop(job)
    assert (await workspace.read_text("a.txt")).text == "unsaved\n"
    await child.aclose()


@pytest.mark.req("FS-2")
async def test_path_that_changed_during_a_write_is_reported(opened, tmp_path):
    workspace, editor = opened
    folder, outside = tmp_path / "safe", tmp_path.parent / f"{tmp_path.name}-outside"
    folder.mkdir()
    outside.mkdir()
    (folder / "a.txt").write_text("saved\n")
    editor.release.set()
    file = await workspace.read_text("safe/a.txt")

    async def request(method, **params):
        if method == "fs/write_text_file":
            folder.rename(tmp_path / "moved")
            folder.symlink_to(outside)
        return {"content": "unsaved\n"}

    editor.request = request
    with pytest.raises(PathError, match="the path changed while the editor wrote it"):
        await workspace.apply([FileChange("safe/a.txt", "changed\n", file.version)])


async def test_unprintable_path_is_read_from_disk(opened, tmp_path):
    workspace, editor = opened
    (tmp_path / "b\n.txt").write_text("saved\n")
    assert (await workspace.read_text("b\\n.txt")).text == "saved\n"
    assert editor.methods == []
