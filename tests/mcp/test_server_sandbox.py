"""A local server with `"sandbox": true`, as a real process in a real sandbox."""

import asyncio
import json
import os
import socket
import sys
import uuid
from pathlib import Path

import pytest

from ostler.core.errors import ToolError
from ostler.core.permission import QuestionReply

pytestmark = pytest.mark.req("MC-1", "EN-8")
SCRIPT = Path(__file__).with_name("sandbox_probe_server.py").read_text("utf-8")


async def decline(question):
    return QuestionReply("decline")


@pytest.fixture
def workspace(tmp_path):
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def make(servers, workspace):
    def make(**changes):
        command = (sys.executable, "-S", "-E", "-c", SCRIPT)  # as text: the sandbox may hide the folder of the tests
        defaults = {"command": command, "cwd": str(workspace), "workspace": str(workspace), "sandbox": True}
        return servers.make(**{**defaults, **changes})

    return make


async def probe(server, action, **arguments):
    result = await server.call("probe", {"action": action, **arguments}, decline)
    return result["content"][0]["text"], not result.get("isError")


def processes_with(word):
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                arguments = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            found += [folder.name] if word.encode() in arguments else []
    return found


@pytest.mark.req("SE-4")
async def test_sandboxed_server_writes_only_to_the_workspace(make, workspace, tmp_path):
    server = make()
    inside, outside = workspace / "inside.txt", tmp_path / "outside.txt"
    assert await probe(server, "write", path=str(inside)) == ("written", True)
    await probe(server, "write", path=str(outside))
    assert inside.read_text() == "written"
    assert not outside.exists()
    unconfined = make(name="free", sandbox=False)
    assert await probe(unconfined, "write", path=str(outside)) == ("written", True)
    assert outside.exists()


@pytest.mark.req("SE-4")
async def test_sandboxed_server_cannot_read_credentials_even_with_network(make, tmp_path, monkeypatch):
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id").write_text("private key")
    monkeypatch.setenv("HOME", str(home))
    for name, network in (("a", False), ("b", True)):
        text, succeeded = await probe(make(name=name, network=network), "read", path=str(home / ".ssh" / "id"))
        assert not succeeded
        assert "private key" not in text
    assert (await probe(make(name="free", sandbox=False), "read", path=str(home / ".ssh" / "id")))[1]


async def test_sandboxed_server_has_the_network_only_if_its_entry_says_so(make):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert (await probe(make(name="offline"), "connect", port=port))[1] is False
        assert await probe(make(name="online", network=True), "connect", port=port) == ("connected", True)


async def test_sandboxed_server_ends_with_its_children(make):
    seconds = f"9{uuid.uuid4().int % 10**8}"
    server = make()
    await probe(server, "spawn", seconds=seconds)
    async with asyncio.timeout(10):
        while not processes_with(seconds):  # its arguments become visible a moment after its start
            await asyncio.sleep(0.01)
    await server.aclose()
    assert not processes_with(seconds)


async def test_server_is_not_started_if_there_is_no_sandbox(make, servers, workspace, monkeypatch):
    monkeypatch.setattr("ostler.processes.bubblewrap.unavailable_reason", lambda layout: "missing")
    monkeypatch.setattr("ostler.processes.landlock.unavailable_reason", lambda: "missing")
    started = workspace / "started"
    server = make(command=("touch", str(started)))
    with pytest.raises(ToolError, match=r"a sandbox is required and none is available"):
        await server.client()
    assert server.status.state == "failed"
    assert "mcp.fake.sandbox" in server.status.detail
    assert not started.exists()


async def test_temporary_folder_is_used_without_a_working_directory_and_removed_at_the_end(make):
    server = make(cwd="")
    environment = json.loads((await probe(server, "environment"))[0])
    assert environment["CWD"] == environment["TMPDIR"]
    assert os.path.isdir(environment["TMPDIR"])
    await server.aclose()
    assert not os.path.exists(environment["TMPDIR"])


@pytest.mark.req("SE-4")
async def test_git_settings_that_a_sandboxed_server_writes_are_quarantined(make, workspace):
    repository = workspace / "nested" / ".git"
    for folder in ("objects", "refs", "hooks"):
        (repository / folder).mkdir(parents=True)
    (repository / "HEAD").write_text("ref: refs/heads/main\n")
    server = make()
    hook = repository / "hooks" / "post-checkout"
    assert (await probe(server, "write", path=str(hook), mode=0o755))[1]
    await server.aclose()
    assert not hook.exists()


async def test_sandboxed_server_is_started_again_after_it_was_restarted(make):
    server = make()
    await server.client()
    await server.restart()
    assert (await asyncio.wait_for(probe(server, "environment"), 20))[1]


def test_sandbox_and_network_change_the_digest_only_of_sandboxed_entries(servers):
    entry = servers.entry
    assert entry().digest == entry(network=True).digest
    assert len({entry().digest, entry(sandbox=True).digest, entry(sandbox=True, network=True).digest}) == 3
