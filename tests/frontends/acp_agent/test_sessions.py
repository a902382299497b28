"""Session requests of an editor, valid and invalid."""

import asyncio
import sys
from pathlib import Path

import pytest

from ostler.app.acp_agent import EditorWorkspaces
from ostler.app.session_manager import LocalSessionManager
from ostler.settings.run_options import RunOptions
from ostler.testing.model_server import calls, text
from ostler.wire.jsonrpc import RpcError

MCP_SERVER = Path(__file__).parents[2] / "mcp" / "fake_mcp_server.py"
LOOK = calls([("list", {})], text="Looking.")


async def rpc_error(request):
    with pytest.raises(RpcError) as caught:
        await request
    return caught.value


@pytest.mark.req("AC-6")
async def test_initialize_returns_the_capabilities(editor_at):
    async with editor_at() as (editor, _):
        initialized = await editor.begin()
        assert initialized["protocolVersion"] == 1
        assert initialized["agentInfo"]["name"] == "ostler"
        can = initialized["agentCapabilities"]
        assert can["loadSession"]
        assert can["promptCapabilities"] == {"image": True, "embeddedContext": True}
        assert set(can["sessionCapabilities"]) == {"list", "resume", "close", "delete", "fork", "additionalDirectories"}


async def test_request_before_the_initialize_response(editor_at):
    async with editor_at() as (editor, _):
        initialized, session = await asyncio.gather(editor.begin(), editor.new())
        assert (initialized["protocolVersion"], bool(session)) == (1, True)


@pytest.mark.parametrize("version", [0, 2, 65535])
async def test_other_protocol_version_is_answered_with_the_supported_one(editor_at, version):
    async with editor_at() as (editor, _):
        initialized = await editor.peer.request("initialize", {"protocolVersion": version, "clientCapabilities": {}})
        assert initialized["protocolVersion"] == 1


@pytest.mark.req("AC-6")
async def test_load_replays_the_history_before_its_response(editor_at):
    async with editor_at(LOOK, text("Found.", thought="Hm.")) as (editor, _):
        session = await editor.opened()
        await editor.prompt(session, "look", {"type": "resource_link", "uri": "file:///x/y.py", "name": "y.py"})
        await editor.peer.request("session/close", {"sessionId": session})
        editor.updates.clear()
        place = {"sessionId": session, "cwd": str(editor.folder), "mcpServers": []}
        opened = await editor.peer.request("session/load", place)
        assert opened["modes"]["currentModeId"] == "ask"
        kinds = [update["sessionUpdate"] for _, update in editor.updates]
        assert kinds[:2] == ["user_message_chunk", "user_message_chunk"]
        assert kinds.index("tool_call") < kinds.index("tool_call_update")
        assert [u["content"]["text"] for u in editor.updates_of("agent_message_chunk")] == ["Looking.", "Found."]
        assert [u["content"]["text"] for u in editor.updates_of("agent_thought_chunk")] == ["Hm."]
        assert [kind for kind in kinds if kind != "session_info_update"][-1] == "usage_update"


@pytest.mark.req("AC-6")
async def test_resume_does_not_replay_the_history(editor_at):
    async with editor_at(text("First."), text("Second.")) as (editor, server):
        session = await editor.opened()
        await editor.prompt(session, "one")
        await editor.peer.request("session/close", {"sessionId": session})
        editor.updates.clear()
        await editor.peer.request("session/resume", {"sessionId": session, "cwd": str(editor.folder)})
        assert editor.updates_of("agent_message_chunk") == []
        await editor.prompt(session, "two")
        assert editor.text() == "Second."
        assert "First." in str(server.requests[-1].json)


async def test_reverted_turns_are_not_replayed(editor_at):
    async with editor_at(text("First."), text("Second.")) as (editor, _):
        session = await editor.opened()
        await editor.prompt(session, "one")
        await editor.prompt(session, "two")
        assert (await editor.prompt(session, "/undo"))["stopReason"] == "end_turn"
        editor.updates.clear()
        place = {"sessionId": session, "cwd": str(editor.folder), "mcpServers": []}
        await editor.peer.request("session/load", place)
        assert editor.text() == "First."


@pytest.mark.req("AC-6")
async def test_fork_creates_an_independent_session(editor_at):
    async with editor_at(text("First."), text("There."), text("Here.")) as (editor, server):
        session = await editor.opened()
        await editor.prompt(session, "one")
        copied = await editor.peer.request("session/fork", {"sessionId": session, "cwd": str(editor.folder)})
        assert copied["sessionId"] != session
        await editor.prompt(copied["sessionId"], "two")
        assert "First." in str(server.requests[-1].json)
        await editor.prompt(session, "three")
        assert "There." not in str(server.requests[-1].json)


@pytest.mark.req("AC-6")
async def test_list_then_delete(editor_at):
    async with editor_at(text("First.")) as (editor, _):
        session = await editor.opened()
        await editor.prompt(session, "one")
        listed = await editor.peer.request("session/list", {"cwd": str(editor.folder)})
        (one,) = listed["sessions"]
        assert (one["sessionId"], one["cwd"]) == (session, str(editor.folder))
        assert "nextCursor" not in listed
        assert [s["sessionId"] for s in (await editor.peer.request("session/list", {}))["sessions"]] == [session]
        await editor.peer.request("session/delete", {"sessionId": session})
        assert (await editor.peer.request("session/list", {}))["sessions"] == []
        assert await editor.peer.request("session/delete", {"sessionId": session}) == {}


async def test_list_has_pages(editor_at, monkeypatch):
    monkeypatch.setattr("ostler.frontends.acp_agent.handler.PAGE_SIZE", 2)
    async with editor_at(text("A."), text("B."), text("C.")) as (editor, _):
        await editor.begin()
        made = set()
        for _ in range(3):
            made.add(session := await editor.new())
            await editor.prompt(session, "go")
        first = await editor.peer.request("session/list", {})
        last = await editor.peer.request("session/list", {"cursor": first["nextCursor"]})
        assert (len(first["sessions"]), len(last["sessions"]), "nextCursor" in last) == (2, 1, False)
        assert {one["sessionId"] for one in (*first["sessions"], *last["sessions"])} == made


@pytest.mark.req("AC-6", "SE-4")
async def test_only_the_exact_id_of_a_session_of_that_folder_is_accepted(editor_at, tmp_path):
    async with editor_at(text("Hi.")) as (editor, _):
        session = await editor.opened()
        await editor.prompt(session, "hello")
        await editor.peer.request("session/close", {"sessionId": session})
        (tmp_path / "other").mkdir()
        for session_id in ("last", session[:-1], session[4:], "", "hello"):
            assert await editor.peer.request("session/delete", {"sessionId": session_id}) == {}
            for method in ("session/load", "session/resume", "session/fork"):
                params = {"cwd": str(editor.folder), "mcpServers": [], "sessionId": session_id}
                assert (await rpc_error(editor.peer.request(method, params))).code == -32002
        for method in ("session/load", "session/resume", "session/fork"):
            params = {"cwd": str(tmp_path / "other"), "mcpServers": [], "sessionId": session}
            assert (await rpc_error(editor.peer.request(method, params))).code == -32002
        listed = (await editor.peer.request("session/list", {}))["sessions"]
        assert [entry["sessionId"] for entry in listed] == [session]


@pytest.mark.req("AC-6", "MD-2")
async def test_missing_model_is_an_error_of_the_agent_that_says_what_to_do(editor_at, monkeypatch):
    async def find_none():
        return []

    monkeypatch.setattr("ostler.models.local_servers.find_local_servers", find_none)
    async with editor_at() as (editor, _):
        options = RunOptions(str(editor.folder))
        editor.agent._manager = LocalSessionManager(options, print)
        editor.agent._workspaces = EditorWorkspaces(options, editor.agent._manager)
        error = await rpc_error(editor.opened())
        assert (error.code, error.data) == (-32603, {"code": "no_model"})
        assert error.message.startswith("no model configured; ")


async def test_close_cancels_the_running_turn(editor_at):
    async with editor_at(text("I am thinking", chunks=4).stall_after(3)) as (editor, _):
        session = await editor.opened()
        turn = asyncio.ensure_future(editor.prompt(session, "go"))
        await editor.until(lambda: editor.text())
        assert await editor.peer.request("session/close", {"sessionId": session}) == {}
        assert (await turn)["stopReason"] == "cancelled"
        assert (await rpc_error(editor.prompt(session, "more"))).code == -32002


PLACE = {"cwd": "/", "mcpServers": []}
MALFORMED_SERVERS = [
    *("x", {}, {"name": "x"}, {"name": 7, "command": "c", "args": [], "env": []}),
    *(
        {"name": "x", "command": "c", "args": "a", "env": []},
        {"name": "x", "command": "c", "args": [], "env": {"A": "1"}},
    ),
    *({"type": "http", "name": "x", "headers": []}, {"type": "no such", "name": "x", "command": "c"}),
]
BLOCK = [{"type": "text", "text": "x"}]


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("no/such", {}, -32601),
        ("_ext/thing", {}, -32601),
        ("logout", {}, -32601),
        ("authenticate", {"methodId": "x"}, -32602),
        ("session/new", {}, -32602),
        ("session/new", {"cwd": 7, "mcpServers": []}, -32602),
        ("session/new", {"cwd": "here", "mcpServers": []}, -32602),
        ("session/new", {"cwd": "/no/such/folder", "mcpServers": []}, -32602),
        ("session/new", {"cwd": "/"}, -32602),
        *(("session/new", {"cwd": "/", "mcpServers": [server]}, -32602) for server in MALFORMED_SERVERS),
        ("session/load", {"cwd": "/", "mcpServers": [{"name": "x"}], "sessionId": "x"}, -32602),
        ("session/load", {**PLACE}, -32602),
        ("session/load", {**PLACE, "sessionId": "nobody"}, -32002),
        ("session/load", {**PLACE, "sessionId": "last"}, -32002),
        ("session/load", {**PLACE, "sessionId": "../../x"}, -32002),
        ("session/resume", {**PLACE, "sessionId": ""}, -32002),
        ("session/fork", {**PLACE, "sessionId": "nobody"}, -32002),
        ("session/prompt", {"sessionId": "nobody", "prompt": BLOCK}, -32002),
        ("session/prompt", {"prompt": BLOCK}, -32602),
        ("session/close", {"sessionId": "nobody"}, -32002),
        ("session/close", {}, -32602),
        ("session/delete", {"sessionId": ["x"]}, -32602),
        ("session/list", {"cwd": "here"}, -32602),
        ("session/list", {"cursor": "no cursor"}, -32602),
        ("session/set_mode", {"sessionId": "nobody", "modeId": "plan"}, -32002),
    ],
)
async def test_invalid_request_is_rejected(editor_at, method, params, code):
    async with editor_at() as (editor, _):
        await editor.begin()
        error = await rpc_error(editor.peer.request(method, params))
        assert error.code == code
        assert error.message
        editor.faults.clear()  # the editor's own frames are invalid here


@pytest.mark.parametrize(
    "block",
    [
        {"type": "audio", "data": "AA==", "mimeType": "audio/wav"},
        {"type": "no such"},
        {"type": "image", "mimeType": "image/png"},
        {"type": "resource_link", "name": "x"},
        {"type": "resource"},
        {"type": "text", "text": " \n"},
    ],
)
async def test_unsupported_prompt_content_is_rejected(editor_at, block):
    async with editor_at() as (editor, _):
        session = await editor.opened()
        assert (await rpc_error(editor.prompt(session, block))).code == -32602
        editor.faults.clear()


async def test_initialize_must_be_called_first(editor_at):
    async with editor_at() as (editor, _):
        assert (await rpc_error(editor.new())).code == -32600
        assert (await rpc_error(editor.peer.request("initialize", {"protocolVersion": "one"}))).code == -32602
        editor.faults.clear()


async def test_meta_is_not_a_parameter(editor_at, tmp_path):
    async with editor_at(text("Here.")) as (editor, _):
        await editor.begin()
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        params = {"cwd": str(editor.folder), "mcpServers": [], "_meta": {"cwd": str(elsewhere), "sessionId": "x"}}
        session = (await editor.peer.request("session/new", params))["sessionId"]
        await editor.prompt(session, "go")
        listed = await editor.peer.request("session/list", {"cwd": str(editor.folder)})
        assert [one["sessionId"] for one in listed["sessions"]] == [session]


@pytest.mark.req("MC-1")
async def test_mcp_server_of_the_editor_is_used(editor_at):
    script = (calls([("files_echo", {"text": "hi"})]), text("Done."))
    async with editor_at(*script) as (editor, model):
        await editor.begin()
        editor.choosing("once")
        env = [{"name": "A", "value": "1"}]
        server = {"name": "files", "command": sys.executable, "args": [str(MCP_SERVER), "--name", "far"], "env": env}
        opened = await editor.peer.request("session/new", {"cwd": str(editor.folder), "mcpServers": [server]})
        await editor.prompt(opened["sessionId"], "go")
        assert model.requests[1].json["messages"][-1]["content"] == "far: hi"


async def test_prompts_and_resources_of_mcp_servers_work_in_an_editor(editor_at):
    async with editor_at(text("One."), text("Two.")) as (editor, model):
        await editor.begin()
        editor.choosing("once")
        args = [str(MCP_SERVER), "--name", "memos", "--offers"]
        server = {"name": "memos", "command": sys.executable, "args": args, "env": []}
        opened = await editor.peer.request("session/new", {"cwd": str(editor.folder), "mcpServers": [server]})
        await editor.until(lambda: "memos:review" in str(editor.updates))
        await editor.prompt(opened["sessionId"], "/memos:review abc")
        assert model.requests[0].json["messages"][-1]["content"] == 'review {"code": "abc"}'
        await editor.prompt(opened["sessionId"], "see @memos:memo://one")
        assert "remember the milk" in str(model.requests[1].json["messages"])


async def test_flag_allows_the_tools_of_a_server_that_the_editor_passes_in(editor_at):
    script = (calls([("files_echo", {"text": "hi"})]), text("Done."))
    async with editor_at(*script, allow=("files_*",), later_servers=True) as (editor, model):
        await editor.begin()
        server = {"name": "files", "command": sys.executable, "args": [str(MCP_SERVER), "--name", "far"], "env": []}
        opened = await editor.peer.request("session/new", {"cwd": str(editor.folder), "mcpServers": [server]})
        await editor.prompt(opened["sessionId"], "go")
        assert model.requests[1].json["messages"][-1]["content"] == "far: hi"


async def test_failed_mcp_server_of_the_editor_is_reported(editor_at):
    async with editor_at(text("Done.")) as (editor, _):
        await editor.begin()
        server = {"name": "files", "command": "no-such-program", "args": [], "env": []}
        opened = await editor.peer.request("session/new", {"cwd": str(editor.folder), "mcpServers": [server]})
        await editor.prompt(opened["sessionId"], "go")
        assert "server files failed" in str(editor.updates)


async def test_unsupported_capabilities_are_not_claimed(editor_at):
    async with editor_at() as (editor, _):
        can = (await editor.begin())["agentCapabilities"]
        assert can["mcpCapabilities"] == {"http": True}
        session = await editor.new()
        error = await rpc_error(editor.prompt(session, {"type": "audio", "mimeType": "audio/wav", "data": "AA=="}))
        assert (error.code, error.message) == (-32602, "audio content is not supported in prompts")


@pytest.fixture
def other_folder(tmp_path):
    """A folder outside of the workspace with a file, and a symlink to a secret outside of it."""
    folder = tmp_path / "other_folder"
    folder.mkdir()
    (folder / "a.txt").write_text("from other_folder")
    (tmp_path / "secret.txt").write_text("s3cret")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    return folder


async def with_directories(editor, *folders):
    place = {"cwd": str(editor.folder), "mcpServers": [], "additionalDirectories": [str(folder) for folder in folders]}
    return (await editor.peer.request("session/new", place))["sessionId"]


@pytest.mark.req("AC-6", "FS-3")
async def test_only_additional_directories_can_be_read(editor_at, other_folder):
    reads = [("read", {"path": str(other_folder / name)}) for name in ("a.txt", "link.txt")]
    others = [("list", {"path": str(other_folder)}), ("read", {"path": str(other_folder.parent / "secret.txt")})]
    write = ("write", {"path": str(other_folder / "b.txt"), "content": "x"})
    async with editor_at(calls([*reads, *others, write]), text("ok")) as (editor, server):
        await editor.begin()
        session = await with_directories(editor, other_folder)
        await editor.prompt(session, "look")
        results = [m["content"] for m in server.requests[-1].json["messages"] if m["role"] == "tool"]
        assert "from other_folder" in results[0]
        assert "a.txt" in results[2]
        assert "s3cret" not in str(results)
        assert "writing outside the workspace is never allowed" in results[4]
        assert f"read, but not change, these folders: {other_folder}" in str(server.requests[-1].json["messages"])
    assert not (other_folder / "b.txt").exists()


async def test_session_without_additional_directories(editor_at, other_folder):
    async with editor_at(calls([("read", {"path": str(other_folder / "a.txt")})]), text("ok")) as (editor, server):
        session = await editor.opened()
        await editor.prompt(session, "look")
        assert "from other_folder" not in str(server.requests[-1].json["messages"])


@pytest.mark.parametrize("folder", ["relative", "/no/such/folder"])
async def test_invalid_directory_is_rejected(editor_at, folder):
    async with editor_at() as (editor, _):
        await editor.begin()
        assert (await rpc_error(with_directories(editor, folder))).code == -32602
