"""The connector over a real WebSocket, against the Socket.IO library of the real server, with the real tool host."""

import asyncio

import pytest
from starlette.responses import Response
from starlette.websockets import WebSocketClose
from tests.backends.agent_zero.connector_double import ConnectorDouble

from ostler.backends.agent_zero.backend import AgentZeroBackend, ZeroPlan
from ostler.backends.agent_zero.connector_hosts import offer_notices
from ostler.backends.agent_zero.connector_probe import probe_connector
from ostler.backends.agent_zero.connector_server import ConnectorLogin, ConnectorServer, ConnectorSettings
from ostler.backends.agent_zero.server import parse_server_url
from ostler.backends.agent_zero.workspace_context import ContextSender, WorkspaceContext
from ostler.core.events import MessageDone, Notice, PermissionAsked, QuestionAsked, ToolCalled, ToolFinished, TurnEnded
from ostler.core.permission import CONFIRMED, Decision, QuestionReply
from ostler.policy.verdict import Policy
from ostler.testing.session_fixture import ALLOW_ALL, make_prompt, open_test_session
from ostler.testing.session_fixture import run_turn as run_one_turn
from ostler.tools.bash import BashTool
from ostler.tools.protocol.connector_files import ConnectorPatchTool, ConnectorReadTool, ConnectorWriteTool
from ostler.tools.protocol.connector_shell import ConnectorShellTool
from ostler.wire.agent_zero.connector_events import Capabilities
from ostler.workspace.session_workspace import SessionShell, SessionWorkspace

pytestmark = pytest.mark.req("AZ-7")
OFF = {"remote_file_writes": False, "remote_exec": False}
LISTS = ("agents_list", "projects", "model_presets", "launcher_gateway_status")


def make_backend(server, login=None, has_key=False, context=None, plan=None, **settings):
    origin, _ = parse_server_url(server.url)

    async def probe(start, listener):
        connector = ConnectorServer(origin, "", login)
        options = ConnectorSettings("this-host", retry_delays=(0.05,) * 40, **settings)
        return await probe_connector(connector, options, start, listener, has_key=has_key)

    plan = plan or {}
    return AgentZeroBackend(ZeroPlan(origin.address, "this-host", **plan), [probe], context)


async def open_session(server, tmp_path, journal=None, policy=ALLOW_ALL, sandbox="off", **options):
    tools = [ConnectorReadTool(), ConnectorWriteTool(), ConnectorPatchTool(), ConnectorShellTool(BashTool())]
    backend, workspace = make_backend(server, **options), make_workspace(tmp_path, sandbox)
    return await open_test_session(backend, tools, workspace, journal=journal, policy=policy)


def make_workspace(folder, sandbox="off"):
    shell = SessionShell(str(folder), writable=True, sandbox=sandbox)
    return SessionWorkspace(str(folder), shell, read_anywhere=False)


async def run_turn(session, text):
    async with asyncio.timeout(15):
        return await run_one_turn(session, text)


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
    assert seen[0]["result"]["content"] == "   2 | two\n   3 | three\n" and seen[0]["host"] == "this-host"
    assert seen[0]["result"]["file"]["total_lines"] == 3
    assert (tmp_path / "a.txt").read_text() == "zero\none\n2\nthree\n"
    assert seen[4]["result"]["file"]["realpath"] == str(tmp_path / "b/new.txt")
    assert all(isinstance(seen[index]["result"]["file"]["mtime"], float) for index in range(5))
    assert [result["result"].get("path") for result in seen] == [None, "a.txt", "a.txt", "b/new.txt", None]
    assert [result["result"]["file"]["total_lines"] for result in seen] == [3, 4, 4, 1, 1]
    assert set(seen[4]["result"]) == {"file"}
    assert next(event.title for event in events if isinstance(event, ToolCalled)) == "read a.txt on this-host"


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
        ("connector_file_op", {"op": "write", "path": "a.txt", "content": "x", "host": "another-host"}),
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
    assert seen[0]["ok"] is False and seen[0]["error"] and seen[0]["host"] == "this-host"
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


async def answer_requests(session, prompt, answers):
    """Run a turn and answer its approval requests in order. Return what was asked and the end."""
    asked, subscription = [], session.subscribe(since=2**62)
    turn = session.start(make_prompt(prompt))
    async with asyncio.timeout(30):
        async for envelope in subscription:
            if isinstance(envelope.event, PermissionAsked):
                asked.append(envelope.event.permission)
                session.answer(envelope.event.ask_id, Decision(answers.pop(0), "person"))
            if isinstance(envelope.event, TurnEnded):
                break
        return asked, await turn.wait()


@pytest.mark.req("PM-11")
@pytest.mark.invariant("P15")
async def test_command_that_writes_needs_approval_in_a_chat(tmp_path):
    """It runs with the workspace read-only first, like a command of the bash tool, and again after the approval."""
    (tmp_path / "a.txt").write_text("one\n")
    seen = []

    async def turn(server):
        for number, code in enumerate(("cat a.txt; X=1", "touch denied", "Y=2; touch allowed-$X$Y", "echo [$X$Y]")):
            seen.append(await server.operation("connector_exec_op", str(number), runtime="terminal", code=code))
        code = "open('denied', 'w')"
        seen.append(await server.operation("connector_exec_op", "4", runtime="python", code=code))

    async with ConnectorDouble(turn) as server:
        session = await open_session(server, tmp_path, policy=Policy(), sandbox="require")
        asked, ended = await answer_requests(session, "hi", ["deny", "allow", "deny"])
        await session.aclose()
    assert ended.reason == "done"
    assert [result["result"]["output"].splitlines()[0] for result in seen[:1]] == ["one"]
    assert [result["result"].get("exit_code") for result in (seen[0], seen[2], seen[3])] == [0, 0, 0], seen
    assert len(asked) == 3 and all("read-only" in str(permission.preview) for permission in asked)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "allowed-12"]
    assert seen[3]["result"]["output"] == "[12]"
    assert "did not allow" in seen[1]["result"]["output"]


@pytest.mark.req("PM-11")
async def test_text_for_a_program_needs_approval_also_in_the_sandbox(tmp_path):
    seen = []

    async def turn(server):
        quick = {"first_output_timeout": 0.2, "between_output_timeout": 0.2, "max_exec_timeout": 20}
        for members in ({"runtime": "terminal", "code": "cat"}, {"runtime": "input", "keyboard": "hello"}):
            seen.append(await server.operation("connector_exec_op", str(len(seen)), **members, timeouts=quick))

    async with ConnectorDouble(turn) as server:
        policy = Policy(interactive=False, allow_sandboxed_by_default=True)
        session = await open_session(server, tmp_path, policy=policy, sandbox="require")
        await run_turn(session, "hi")
        await session.aclose()
    assert [result["ok"] for result in seen] == [True, False], seen


async def test_operation_between_turns_is_refused(tmp_path):
    (tmp_path / "a.txt").write_text("one\n")
    async with ConnectorDouble(hello) as server:
        session = await open_session(server, tmp_path)
        await run_turn(session, "hi")
        async with asyncio.timeout(5):
            result = await server.operation("connector_file_op", "1", op="read", path="a.txt")
        await session.aclose()
    assert not result["ok"] and "no prompt" in result["error"]


async def test_replaced_and_interleaved_answers_are_not_part_of_the_final_message(tmp_path):
    async def turn(server):
        await server.event("assistant_message", "one two")
        await server.event("assistant_message", "second")
        await server.event("assistant_message", "CHANGED", seq=len(server.log) - 2)
        await server.event("assistant_message", "CHANGED again", seq=len(server.log) - 2)
        await server.event("assistant_message", "second, longer", seq=len(server.log) - 1)

    async with ConnectorDouble(turn) as server:
        session = await open_session(server, tmp_path)
        events, ended = await run_turn(session, "hi")
        await session.aclose()
    assert ended.reason == "done"
    assert texts(events)[-1] == "CHANGED again\n\nsecond, longer"


async def test_call_of_the_agent_is_shown_between_the_texts_around_it(tmp_path):
    async def turn(server):
        await server.event("assistant_message", "before")
        await server.event("tool_start", "output", "Using tool", {"tool_name": "search"})
        await server.event("assistant_message", "after")

    async with ConnectorDouble(turn) as server:
        session = await open_session(server, tmp_path)
        events, _ = await run_turn(session, "hi")
        await session.aclose()
    shown = [
        event.message.text if isinstance(event, MessageDone) else event.result.for_model
        for event in events
        if isinstance(event, MessageDone | ToolFinished)
    ]
    assert shown == ["before", "output", "after"]


@pytest.mark.parametrize("is_reopened", [False, True])
async def test_log_that_begins_again_is_shown(is_reopened, tmp_path):
    """For example after a reset on the server's web page; the numbers of the events are small again."""

    async def long(server):
        for number in range(8):
            await server.event("info", "", f"step {number}")
        await server.event("assistant_message", "First.")

    async def again(server):
        await server.drop()
        server.log.clear()
        server.updates.clear()
        await server.event("info", "", "new log")
        await server.event("assistant_message", "Second.")
        while len(server.subscriptions) < 2 + is_reopened:
            await asyncio.sleep(0.01)

    async with ConnectorDouble(long, again) as server:
        session = await open_session(server, tmp_path)
        await run_turn(session, "hi")
        if is_reopened:
            journal = session._journal
            await session.aclose()
            session = await open_session(server, tmp_path, journal=journal)
        events, ended = await run_turn(session, "more")
        await session.aclose()
    assert (ended.reason, texts(events)[-1]) == ("done", "Second.")
    assert any("new log" in text for text in notices(events))


async def test_turn_without_anything_is_an_error_and_huge_numbers_are_ignored(tmp_path):
    async def turn(server):
        event = {"context_id": "ctx-1", "sequence": 10**30, "event": "assistant_message", "data": {"text": "wrong"}}
        await server.emit("connector_context_event", event)

    async with ConnectorDouble(turn, answer) as server:
        session = await open_session(server, tmp_path)
        _, ended = await run_turn(session, "hi")
        events, then = await run_turn(session, "more")
        await session.aclose()
    assert (ended.reason, ended.fault.code) == ("failed", "empty")
    assert (then.reason, texts(events)) == ("done", ["Done."])


async def test_login_whose_answer_sets_several_cookies(tmp_path):
    class TwoCookies(ConnectorDouble):
        async def _login(self, request):
            response = await super()._login(request)
            response.raw_headers.insert(0, (b"set-cookie", b"lang=en; Path=/; Expires=Wed, 21 Oct 2099 07:28:00 GMT"))
            return response

    async with TwoCookies(hello, user="me", password="pw") as server:
        session = await open_session(server, tmp_path, login=ConnectorLogin("me", "pw"))
        events, ended = await run_turn(session, "hi")
        await session.aclose()
    assert (ended.reason, texts(events), server.logins) == ("done", ["Hello."], 1)


@pytest.mark.parametrize("has_key", [False, True])
async def test_socket_that_a_proxy_does_not_forward_is_named(has_key, tmp_path):
    """With a key for the message API, that is used instead; here no other way is configured."""
    async with ConnectorDouble(hello) as server:

        async def refuse(scope, receive, send):
            assert scope["type"] in ("http", "websocket")
            await (WebSocketClose() if scope["type"] == "websocket" else Response(status_code=404))(
                scope, receive, send
            )

        server.sio.eio.handle_request = refuse
        session = await open_session(server, tmp_path, has_key=has_key)
        events, ended = await run_turn(session, "hi")
        await session.aclose()
    assert ended.reason == "failed"
    if has_key:
        assert [text.count("proxy") for text in notices(events) if "the connector is not used" in text] == [1]
    else:
        assert "/socket.io/" in ended.fault.message and "proxy" in ended.fault.hint


async def test_lost_conversation_gets_the_description_again(tmp_path):
    class Described:
        async def build(self, *, requests_tools=True):
            return WorkspaceContext("[described]", "same", "tree")

    async with ConnectorDouble(hello, hello, hello) as server:
        backend = make_backend(server, context=ContextSender(Described(), "on_change"))
        session = await open_test_session(backend, [], make_workspace(tmp_path))
        await run_turn(session, "one")
        await run_turn(session, "two")
        server.context_id = "ctx-2"
        await server.drop()
        await asyncio.wait_for(backend._transport._socket.closed.wait(), 10)
        _, ended = await run_turn(session, "three")
        await session.aclose()
    assert ended.reason == "done", ended
    assert ["[described]" in message["message"] for message in server.messages] == [True, False, True]


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


@pytest.mark.req("AZ-7")
async def test_options_can_be_set_before_the_first_prompt(tmp_path):
    from ostler.core.sessions import SetOption

    async with ConnectorDouble(hello) as server:
        session = await open_session(server, tmp_path)
        assert [option.id for option in session.info.options if "Agent Zero" in option.label] == [
            "agent_profile",
            "project",
        ]
        assert await session.apply(SetOption("project", "web"))
        assert "model_preset" in [option.id for option in session.info.options]
        await run_turn(session, "hi")
        await session.aclose()
    assert ("projects", {"context_id": "ctx-1", "action": "activate", "name": "web"}) in server.posts


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


async def test_default_profile_is_used_from_the_next_conversation_on(tmp_path):
    from ostler.core.sessions import SetOption

    async with ConnectorDouble(hello, hello) as server:
        session = await open_session(server, tmp_path)
        await run_turn(session, "hi")
        assert await session.apply(SetOption("agent_profile", "coder"))
        assert await session.apply(SetOption("agent_profile", ""))
        assert any("from the next conversation on" in text for text in notices(session.events()))
        assert "" in [option.value for option in session.info.options if option.id == "agent_profile"]
        await run_turn(session, "/terminate")
        await run_turn(session, "new")
        await session.aclose()
    assert [body["agent_profile"] for route, body in server.posts if route == "agent_profile_set"] == ["coder"]


def test_unknown_version_of_the_server_is_not_named():
    hello_reply = {"remote_tools": {"remote_files": True}}
    [(text, _)] = offer_notices(
        Capabilities(server_version="unknown"), hello_reply, "here", {"remote_files": True} | OFF
    )
    assert text == "Agent Zero may request on here: read files; your rules decide"


async def test_only_the_reason_of_an_operation_is_the_words_of_the_server(tmp_path):
    stated = []

    async def turn(server):
        await server.operation("connector_file_op", "1", op="write", path="a.txt", content="x", reason="needed")
        await server.event("assistant_message", "Done.")

    plan = {"on_request": lambda call_id, request: stated.append((request.command, request.reason))}
    async with ConnectorDouble(turn) as server:
        session = await open_session(server, tmp_path, plan=plan)
        events, _ = await run_turn(session, "hi")
        await session.aclose()
    assert stated == [("", "needed")]
    assert "write a.txt on this-host" in [event.title for event in events if isinstance(event, ToolCalled)]


async def answer(server):
    await server.event("assistant_message", "Done.")


async def test_events_after_the_report_of_the_end_are_shown(tmp_path):
    """The server polls its log twice a second, but reports the end at once."""

    async def turn(server):
        server.poll = 0.3
        server.log.append({"context_id": "ctx-1", "sequence": 2, "event": "info", "data": {"heading": "late"}})
        server.updates.append(1)
        return "The answer."

    async with ConnectorDouble(turn, poll=0.3) as server:
        session = await open_session(server, tmp_path)
        events, ended = await run_turn(session, "hi")
        await session.aclose()
    assert (ended.reason, texts(events)) == ("done", ["The answer."])
    assert any("late" in text for text in notices(events))


@pytest.mark.parametrize("is_old", [False, True])
async def test_two_prompts_in_a_row_each_get_their_answer(is_old, tmp_path):
    async def second(server):
        await server.event("assistant_message", "Second.")

    async with ConnectorDouble(answer, second, is_old=is_old) as server:
        session = await open_session(server, tmp_path)
        first, _ = await run_turn(session, "one")
        then, _ = await run_turn(session, "two")
        await session.aclose()
    assert (texts(first), texts(then)) == (["Done."], ["Second."])


async def test_agent_that_fails_fails_the_turn(tmp_path):
    async def turn(server):
        raise RuntimeError("no model is configured")

    async with ConnectorDouble(turn) as server:
        session = await open_session(server, tmp_path)
        events, ended = await run_turn(session, "hi")
        await session.aclose()
    assert ended.reason == "failed" and "no model is configured" in ended.fault.message
    assert "no model is configured" in texts(events)[-1]


async def test_prompt_is_not_sent_twice_if_its_acknowledgement_is_lost(tmp_path, monkeypatch):
    monkeypatch.setattr("ostler.backends.agent_zero.connector.IDLE_SECONDS", 0.5)
    async with ConnectorDouble(answer, loses_acks=1) as server:
        session = await open_session(server, tmp_path)
        events, ended = await run_turn(session, "do it once")
        await session.aclose()
    assert (ended.reason, texts(events)) == ("done", ["Done."])
    assert [message["message"] for message in server.messages] == ["do it once"]


async def test_prompt_that_may_not_have_arrived_is_reported_and_not_repeated(tmp_path):
    class Deaf(ConnectorDouble):
        async def _message(self, sid, data):
            await self.drop()

    async with Deaf() as server:
        session = await open_session(server, tmp_path)
        _, ended = await run_turn(session, "hi")
        await session.aclose()
    assert ended.reason == "failed" and "may not have arrived" in ended.fault.hint
    assert server.messages == []


@pytest.mark.parametrize("cut_after", range(0, 8, 2))
async def test_connection_is_resumed_after_any_event(cut_after, tmp_path):
    """Each of the events is shown once, with its last text, wherever the connection is cut."""

    async def turn(server):
        for number in range(4):
            await server.event("assistant_message", f"part {number}")
            await server.event("assistant_message", f"part {number}, complete", seq=len(server.log) - 1)
            if cut_after in (2 * number, 2 * number + 1):
                await server.drop()
        while len(server.subscriptions) < 2:
            await asyncio.sleep(0.01)

    async with ConnectorDouble(turn) as server:
        session = await open_session(server, tmp_path)
        events, ended = await run_turn(session, "hi")
        await session.aclose()
    assert ended.reason == "done"
    assert "".join(texts(events)) == "\n\n".join(f"part {number}, complete" for number in range(4))


async def test_long_history_of_another_client_is_not_shown(tmp_path):
    async with ConnectorDouble(answer, answer) as server:
        session = await open_session(server, tmp_path)
        await run_turn(session, "hi")
        journal = session._journal
        await session.aclose()
        server.poll = 0.0
        for number in range(180):
            await server.event("assistant_message", f"of another client {number}")
        server.poll = 0.01
        session = await open_session(server, tmp_path, journal=journal)
        events, _ = await run_turn(session, "more")
        await session.aclose()
    assert texts(events) == ["Done."]


async def test_message_with_a_file_is_posted_once_and_ends_with_the_answer(tmp_path):
    from ostler.core.prompt import EmbeddedResource, Prompt, TextContent

    async def turn(server):
        await server.event("info", "", "working")
        return "Read it."

    prompt = Prompt("p1", (TextContent("look"), EmbeddedResource("file:///a.txt", "content")))
    async with ConnectorDouble(turn, is_old=True) as server:
        session = await open_session(server, tmp_path)
        running = session.start(prompt)
        ended = await running.wait()
        await session.aclose()
    sent = [body for route, body in server.posts if route == "message_send"]
    assert ended.reason == "done" and len(sent) == 1 and sent[0]["attachments"][0]["filename"] == "a.txt"
    assert [event.message.text for event in session.events() if isinstance(event, MessageDone)] == ["Read it."]


@pytest.mark.parametrize("is_old", [False, True])
async def test_nudge_lets_the_agent_go_on(is_old, tmp_path, monkeypatch):
    monkeypatch.setattr("ostler.backends.agent_zero.connector.IDLE_SECONDS", 0.5)
    async with ConnectorDouble(answer, answer, is_old=is_old) as server:
        session = await open_session(server, tmp_path)
        await run_turn(session, "hi")
        events, ended = await run_turn(session, "/nudge")
        await session.aclose()
    assert (ended.reason, texts(events)) == ("done", ["Done."])


async def test_server_says_what_it_may_use_and_versions_are_compared(tmp_path):
    async with ConnectorDouble(answer, version="0.3.1", remote_tools={"remote_exec": True}) as server:
        session = await open_session(server, tmp_path)
        events, _ = await run_turn(session, "hi")
        await session.aclose()
    shown = notices(events)
    assert any("Agent Zero v1.9 may request on this-host: read files, write files, run commands" in t for t in shown)
    assert any("disagree about" in text and "run commands" in text for text in shown)
    assert any("version 0.3.1" in text and "0.1" in text for text in shown)


OTHER = {"id": "x", "host_label": "laptop-2", "state": "connected", "scopes": {"files": True, "code_execution": True}}


async def test_second_host_is_never_used_without_asking(tmp_path):
    async with ConnectorDouble(answer, gateways=[OTHER]) as server:
        session = await open_session(server, tmp_path, policy=Policy(interactive=False))
        _, ended = await run_turn(session, "hi")
        await session.aclose()
    assert ended.fault.code == "ambiguous_host" and server.messages == []
    assert "this-host" in ended.fault.message and "laptop-2" in ended.fault.message


@pytest.mark.req("AZ-7")
@pytest.mark.parametrize("names", [("laptop-2",), ("laptop-2", "another"), ("laptop",)])
async def test_second_host_can_be_named_in_the_settings(names, tmp_path):
    async with ConnectorDouble(answer, gateways=[OTHER]) as server:
        session = await open_session(server, tmp_path, policy=Policy(interactive=False), other_hosts=names)
        _, ended = await run_turn(session, "hi")
        await session.aclose()
    assert (ended.reason == "done") is ("laptop-2" in names)
    assert len(server.messages) == ("laptop-2" in names)


@pytest.mark.parametrize(
    ("reply", "is_accepted"),
    [
        (QuestionReply("accept", {CONFIRMED: True}), True),
        (QuestionReply("accept", {CONFIRMED: False}), False),
        (QuestionReply("accept", {CONFIRMED: "no"}), False),
        (QuestionReply("accept", {"text": "no"}), False),
        (QuestionReply("accept"), False),
        (QuestionReply("decline"), False),
    ],
)
async def test_second_host_is_used_only_after_a_clear_yes(reply, is_accepted, tmp_path):
    async with ConnectorDouble(answer, gateways=[OTHER, {"state": "disconnected"}, "junk"]) as server:
        session = await open_session(server, tmp_path)
        subscription = session.subscribe()
        running = session.start(make_prompt("hi"))
        async for envelope in subscription:
            if isinstance(envelope.event, QuestionAsked):
                question = envelope.event.question
                assert "laptop-2" in question.text and "Commands run on laptop-2" in question.text
                session.answer(question.id, reply)
                break
        ended = await running.wait()
        await session.aclose()
    assert (ended.reason == "done") is is_accepted and len(server.messages) == is_accepted


async def test_second_host_is_asked_about_again_after_a_no(tmp_path):
    async with ConnectorDouble(answer, gateways=[OTHER]) as server:
        session = await open_session(server, tmp_path, policy=Policy(interactive=False))
        ends = [(await run_turn(session, text))[1] for text in ("one", "two")]
        await session.aclose()
    assert [ended.fault.code for ended in ends] == ["ambiguous_host"] * 2 and server.messages == []


async def test_tool_that_ran_on_another_machine_is_reported(tmp_path):
    (tmp_path / "a.txt").write_text("x\n")

    async def turn(server):
        await server.event("tool_start", "", "icon://construction A0: Using tool 'text_editor_remote'")
        await server.operation("connector_file_op", "1", op="read", path="a.txt")
        await server.event("tool_start", "a.txt 1 lines", "Using tool 'text_editor_remote'", seq=len(server.log) - 1)
        await server.event("code_output", "code_execution_remote: no CLI", "icon://terminal code_execution_remote")
        await server.event(
            "code_output", "Session 0 completed.", "icon://terminal [0] code_execution_remote - terminal"
        )

    async with ConnectorDouble(turn) as server:
        session = await open_session(server, tmp_path)
        events, _ = await run_turn(session, "hi")
        await session.aclose()
    warnings = [text for text in notices(events) if "another machine" in text]
    assert len(warnings) == 1 and warnings[0].startswith("code_execution_remote") and "this-host" in warnings[0]


async def test_tool_that_ran_here_is_shown_once_and_one_that_ran_elsewhere_is_shown_too(tmp_path):
    (tmp_path / "a.txt").write_text("mine\n")

    async def turn(server):
        for text in ("a.txt 1 lines\n   1 | mine\n", "a.txt 1 lines\n   1 | of another machine\n"):
            await server.event("tool_start", "", "A0: Using tool 'text_editor_remote'")
            if "machine" not in text:
                await server.operation("connector_file_op", "1", op="read", path="a.txt")
            await server.event("tool_start", text, "A0: Using tool 'text_editor_remote'", seq=len(server.log) - 1)
        await server.event("tool_start", "found", "A0: Using tool 'search_engine'", {"tool_name": "search_engine"})

    async with ConnectorDouble(turn) as server:
        session = await open_session(server, tmp_path)
        events, _ = await run_turn(session, "hi")
        await session.aclose()
    results = [event.result.for_model for event in events if isinstance(event, ToolFinished)]
    assert [[word for word in ("mine", "another machine", "found") if word in text] for text in results] == [
        ["mine"],
        ["another machine"],
        ["found"],
    ]


async def test_steps_that_are_still_received_are_no_lines(tmp_path):
    async def turn(server):
        await server.event("status", "", "A0: Calling LLM...")
        await server.event("status", "", "A0: Reasoning... ||", {"reasoning": "hm", "step": "Reasoning"}, seq=1)
        await server.event("status", "{", "A0: Receiving...", seq=1)
        await server.event("status", '{"thoughts"', "A0: Plan", {"thoughts": ["I plan"], "headline": "Plan"}, seq=1)
        await server.event("status", "", "icon://timer Wait: 9 s", {"seconds": 9})
        await server.event("status", "", "icon://timer Wait: 8 s", {"seconds": 9}, seq=2)
        await server.event("status", "Docker is not running.")
        await server.event("assistant_message", "Done.")

    async with ConnectorDouble(turn) as server:
        session = await open_session(server, tmp_path)
        events, _ = await run_turn(session, "hi")
        await session.aclose()
    shown = [text for text in notices(events) if "may request" not in text]
    assert shown == ["Agent Zero: Wait: 9 s", "Agent Zero: Docker is not running."]


async def test_slow_approval_is_reported_and_the_repeated_request_gets_the_result(tmp_path, monkeypatch):
    """The server gives up after 30 seconds; what the user allows later must not run twice."""
    monkeypatch.setattr("ostler.backends.agent_zero.connector_operations.FILE_SECONDS", 0.2)
    seen, allowed = [], asyncio.Event()

    async def turn(server):
        seen.append(await server.operation("connector_file_op", "1", op="write", path="new.txt", content="x\n"))
        allowed.set()
        while not (tmp_path / "new.txt").exists():
            await asyncio.sleep(0.01)
        seen.append(await server.operation("connector_file_op", "2", op="write", path="new.txt", content="x\n"))

    async with ConnectorDouble(turn) as server:
        session = await open_session(server, tmp_path, policy=Policy(rules=()))
        subscription = session.subscribe()
        running = session.start(make_prompt("hi"))
        asked = 0
        async for envelope in subscription:
            if isinstance(envelope.event, PermissionAsked):
                asked += 1
                await allowed.wait()
                session.answer(envelope.event.ask_id, Decision("allow", "person"))
                break
        ended = await running.wait()
        await session.aclose()
    assert ended.reason == "done" and asked == 1
    assert [result["ok"] for result in seen] == [False, True], seen
    assert "request exactly the same again" in seen[0]["error"] and seen[1]["op_id"] == "2"
