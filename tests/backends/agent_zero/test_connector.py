"""The connector over a real WebSocket, against the Socket.IO library of the real server, with the real tool host."""

import asyncio

import pytest
from tests.backends.agent_zero.connector_double import ConnectorDouble

from ostler.backends.agent_zero.backend import AgentZeroBackend, ZeroPlan
from ostler.backends.agent_zero.connector import ConnectorSettings, probe_connector
from ostler.backends.agent_zero.connector_server import ConnectorLogin, ConnectorServer
from ostler.backends.agent_zero.server import parse_server_url
from ostler.core.events import MessageDone, Notice, ToolCalled, ToolFinished
from ostler.testing.session_fixture import make_prompt, open_test_session, run_turn
from ostler.tools.bash import BashTool
from ostler.tools.patch import PatchTool
from ostler.tools.protocol.connector_files import ConnectorReadTool, ConnectorWriteTool
from ostler.tools.protocol.connector_shell import ConnectorShellTool
from ostler.workspace.session_workspace import SessionShell, SessionWorkspace

pytestmark = pytest.mark.req("AZ-7")
LISTS = ("agents_list", "projects", "model_presets", "launcher_gateway_status")


def make_backend(server, login=None, has_key=False, **settings):
    origin, _ = parse_server_url(server.url)

    async def probe(start, listener):
        connector = ConnectorServer(origin, "", login)
        options = ConnectorSettings("this-host", retry_delays=(0.05,) * 40, **settings)
        return await probe_connector(connector, options, start, listener, has_key=has_key)

    return AgentZeroBackend(ZeroPlan(origin.address, "this-host"), [probe])


async def open_session(server, tmp_path, journal=None, **options):
    tools = [ConnectorReadTool(), ConnectorWriteTool(), PatchTool(), ConnectorShellTool(BashTool())]
    return await open_test_session(make_backend(server, **options), tools, make_workspace(tmp_path), journal=journal)


def make_workspace(folder):
    shell = SessionShell(str(folder), writable=True, sandbox="off")
    return SessionWorkspace(str(folder), shell, read_anywhere=False)


def texts(events):
    return [event.message.text for event in events if isinstance(event, MessageDone) and event.message.text]


def notices(events):
    return [event.text for event in events if isinstance(event, Notice)]


async def hello(server):
    await server.event("status", "", "Thinking", {"thoughts": ["I think"]})
    await server.event("assistant_message", "Hel")
    await server.event("assistant_message", "Hello.", seq=len(server.log) - 1)


async def test_answer_grows_in_place_and_conversation_is_continued_after_reopening(tmp_path):
    async def again(server):
        await server.event("assistant_message", "Again.")

    async with ConnectorDouble(hello, again, again) as server:
        session = await open_session(server, tmp_path)
        first, ended = await run_turn(session, "hi")
        second, _ = await run_turn(session, "more")
        journal = session._journal
        await session.aclose()
        reopened = await open_session(server, tmp_path, journal=journal)
        third, _ = await run_turn(reopened, "third")
        await reopened.aclose()
    assert ended.reason == "done"
    assert (texts(first), texts(second), texts(third)) == (["Hello."], ["Again."], ["Again."])
    assert [message["message"] for message in server.messages] == ["hi", "more", "third"]
    assert [route for route, _ in server.posts].count("chat_create") == 1
    assert server.subscriptions[-1]["from"] > 0
    assert server.hellos[0]["host"] == "this-host" and server.hellos[0]["remote_exec"] == {"enabled": False}


async def test_lost_connection_is_resumed_after_the_last_event(tmp_path):
    async def turn(server):
        await server.event("assistant_message", "One")
        await server.drop()
        await server.event("assistant_message", "One two", seq=len(server.log) - 1)
        await server.event("info", "", "meanwhile")
        while len(server.subscriptions) < 2:
            await asyncio.sleep(0.01)
        await server.event("assistant_message", "Three")

    async with ConnectorDouble(turn) as server:
        session = await open_session(server, tmp_path)
        events, ended = await run_turn(session, "hi")
        await session.aclose()
    assert ended.reason == "done"
    assert "".join(texts(events)) == "One two\n\nThree"
    assert sum("meanwhile" in text for text in notices(events)) == 1
    assert len(server.messages) == 1


async def test_file_operations_run_through_the_tool_host(tmp_path):
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\n")
    seen = []

    async def turn(server):
        seen.append(await server.operation("connector_file_op", "1", op="read", path="a.txt", line_from=2))
        edits = [{"from": 2, "to": 2, "content": "TWO\n"}, {"from": 1, "content": "zero\n"}]
        seen.append(await server.operation("connector_file_op", "2", op="patch", path="a.txt", edits=edits))
        patch = "@@ zero\n one\n-TWO\n+2\n"
        seen.append(await server.operation("connector_file_op", "3", op="patch", path="a.txt", patch_text=patch))
        seen.append(await server.operation("connector_file_op", "4", op="write", path="b/new.txt", content="x\n"))
        seen.append(await server.operation("connector_file_op", "5", op="stat", path="b/new.txt"))

    async with ConnectorDouble(turn) as server:
        session = await open_session(server, tmp_path)
        events, ended = await run_turn(session, "hi")
        await session.aclose()
    assert ended.reason == "done" and [result["ok"] for result in seen] == [True] * 5, seen
    assert seen[0]["result"]["content"] == "   2 | two\n   3 | three" and seen[0]["host"] == "this-host"
    assert seen[0]["result"]["file"]["total_lines"] == 3
    assert (tmp_path / "a.txt").read_text() == "zero\none\n2\nthree\n"
    assert seen[4]["result"]["file"]["realpath"] == str(tmp_path / "b/new.txt")
    assert all(isinstance(seen[index]["result"]["file"]["mtime"], float) for index in (0, 1, 3, 4))
    assert next(event.title for event in events if isinstance(event, ToolCalled)) == "connector_read on this-host"


async def test_patch_of_a_file_that_was_not_read_or_has_changed_names_the_code_of_the_server(tmp_path):
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    edits = [{"from": 1, "to": 1, "content": "ONE\n"}]
    seen = []

    async def turn(server):
        seen.append(await server.operation("connector_file_op", "1", op="patch", path="a.txt", edits=edits))
        seen.append(await server.operation("connector_file_op", "2", op="read", path="a.txt"))
        (tmp_path / "a.txt").write_text("changed\n")
        seen.append(await server.operation("connector_file_op", "3", op="patch", path="a.txt", edits=edits))
        seen.append(await server.operation("connector_file_op", "4", op="read", path="a.txt"))
        seen.append(await server.operation("connector_file_op", "5", op="patch", path="a.txt", edits=edits))

    async with ConnectorDouble(turn) as server:
        session = await open_session(server, tmp_path)
        await run_turn(session, "hi")
        await session.aclose()
    assert [result["ok"] for result in seen] == [False, True, False, True, True], seen
    assert [seen[0]["code"], seen[2]["code"]] == ["patch_need_read", "patch_stale_read"]
    assert (tmp_path / "a.txt").read_text() == "ONE\n"


@pytest.mark.parametrize(
    ("name", "members"),
    [
        ("connector_file_op", {"op": "write", "path": "../outside.txt", "content": "x"}),
        ("connector_file_op", {"op": "write", "path": "/etc/ostler-test", "content": "x"}),
        ("connector_file_op", {"op": "patch", "path": "a.txt", "edits": [{"from": 99, "to": 99, "content": "x"}]}),
        ("connector_file_op", {"op": "patch", "path": "a.txt", "patch_text": "*** Add File: b\n+x"}),
        ("connector_file_op", {"op": "erase", "path": "a.txt"}),
        ("connector_file_op", {"op": "read"}),
        ("connector_exec_op", {"runtime": "input", "keyboard": "rm -rf ."}),
        ("connector_exec_op", {"runtime": "perl", "code": "1"}),
        ("connector_computer_use_op", {"action": "click"}),
        ("connector_file_op", {"op": "read", "path": "a.txt", "context_id": "another"}),
    ],
)
async def test_operation_is_refused_and_changes_nothing(name, members, tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.txt").write_text("one\n")
    seen = []

    async def turn(server):
        seen.append(await server.operation(name, "1", **members))

    async with ConnectorDouble(turn) as server:
        session = await open_session(server, root)
        await run_turn(session, "hi")
        await session.aclose()
    assert seen[0]["ok"] is False and seen[0]["error"]
    assert [path.name for path in tmp_path.rglob("*")] == ["root", "a.txt"]
    assert (root / "a.txt").read_text() == "one\n"


async def test_commands_run_in_shell_sessions_through_the_tool_host(tmp_path):
    (tmp_path / "sub").mkdir()
    seen = []
    quick = {"first_output_timeout": 0.2, "between_output_timeout": 0.2, "max_exec_timeout": 20, "dialog_timeout": 0.2}

    async def turn(server):
        async def run(op_id, **members):
            seen.append(await server.operation("connector_exec_op", op_id, **members))

        await run("1", runtime="terminal", session=0, code="cd sub; X=5; echo hi; exit 3")
        await run("2", runtime="python", session=0, code="import os; print('it''s', os.path.basename(os.getcwd()))")
        await run("3", runtime="terminal", session="0", code="echo $X; read y; echo got $y", timeouts=quick)
        await run("4", runtime="input", session=0, keyboard="ls")
        await run("5", runtime="output", session=0)
        await run("6", runtime="terminal", session=0, code="pwd", reset=True)
        await run("7", runtime="nodejs", session=1, code="console.log(6 * 7)")
        await run("8", runtime="reset", session=0)

    async with ConnectorDouble(turn) as server:
        session = await open_session(server, tmp_path)
        events, _ = await run_turn(session, "hi")
        await session.aclose()
    assert [result["ok"] for result in seen] == [True] * 8, seen
    results = [result["result"] for result in seen]
    assert results[0]["output"] == "hi" and results[0]["exit_code"] == 3 and seen[0]["host"] == "this-host"
    assert results[1]["output"] == "its sub"
    assert results[2]["output"] == "5" and results[2]["running"] is True
    assert results[3]["output"] == "got ls" and results[3]["running"] is False
    assert results[4]["output"] == "got ls" and results[4]["message"] == "Session 0 completed."
    assert results[5]["output"] == str(tmp_path) and results[6]["output"] == "42"
    assert "reset" in results[7]["message"]
    assert len([event for event in events if isinstance(event, ToolFinished)]) == 8


async def test_operation_between_turns_is_refused(tmp_path):
    (tmp_path / "a.txt").write_text("one\n")
    async with ConnectorDouble(hello) as server:
        session = await open_session(server, tmp_path)
        await run_turn(session, "hi")
        async with asyncio.timeout(5):
            result = await server.operation("connector_file_op", "1", op="read", path="a.txt")
        await session.aclose()
    assert not result["ok"] and "no prompt" in result["error"]


async def test_events_of_other_conversations_are_not_shown(tmp_path):
    async def turn(server):
        event = {"context_id": "other", "sequence": 50, "event": "assistant_message", "data": {"text": "wrong"}}
        await server.emit("connector_context_event", event)
        await server.emit("connector_context_complete", {"context_id": "other"})
        for junk in ("text", None, [], {"context_id": server.context_id, "sequence": "x", "event": 3}):
            await server.emit("connector_context_event", junk)
        await server.event("assistant_message", "right")

    async with ConnectorDouble(turn) as server:
        session = await open_session(server, tmp_path)
        events, _ = await run_turn(session, "hi")
        await session.aclose()
    assert texts(events) == ["right"]


async def test_login_with_user_and_password(tmp_path):
    async with ConnectorDouble(hello, user="me", password="pw") as server:
        session = await open_session(server, tmp_path, login=ConnectorLogin("me", "pw"))
        events, ended = await run_turn(session, "hi")
        await session.aclose()
    assert (ended.reason, texts(events), server.logins) == ("done", ["Hello."], 1)


@pytest.mark.parametrize("login", [None, ConnectorLogin("me", "wrong")])
async def test_missing_or_wrong_login_names_the_command(login, tmp_path):
    async with ConnectorDouble(user="me", password="pw") as server:
        session = await open_session(server, tmp_path, login=login)
        _, ended = await run_turn(session, "hi")
        await session.aclose()
    assert ended.fault.code == "auth" and "ostler zero login --user" in ended.fault.hint


async def test_cancelling_pauses_the_agent(tmp_path):
    started = asyncio.Event()

    async def turn(server):
        started.set()
        await asyncio.Event().wait()

    async with ConnectorDouble(turn) as server:
        session = await open_session(server, tmp_path)
        running = session.start(make_prompt("hi"))
        await started.wait()
        running.cancel()
        await running.wait()
        await session.aclose()
    assert ("pause", {"context_id": "ctx-1", "paused": True}) in server.posts


async def test_commands_and_options_of_the_connector(tmp_path):
    from ostler.core.sessions import SetOption

    async with ConnectorDouble(hello, hello) as server:
        session = await open_session(server, tmp_path)
        await run_turn(session, "hi")
        assert await session.apply(SetOption("agent_profile", "coder"))
        assert await session.apply(SetOption("model_preset", "fast"))
        events, _ = await run_turn(session, "/tokens")
        await run_turn(session, "/compact")
        await run_turn(session, "/terminate")
        await run_turn(session, "new")
        await session.aclose()
    assert any("1,234 of 100,000 tokens" in text for text in notices(events))
    routes = [route for route, _ in server.posts if route not in LISTS]
    settings = ["agent_profile_set", "model_switcher"]
    assert routes[:7] == ["chat_create", "token_status", *settings, "token_status", "compact_chat", "chat_delete"]
    assert routes[7:10] == ["chat_create", *settings]
