"""Specification 001, the JolliAgent CLI: a server with the model, a client that runs the tools; protocol and policy."""

import hashlib
import json
import os
import subprocess
import time
from contextlib import contextmanager

import pytest
from tests.frontends.server.server_client import LS, Gate, text_of
from tests.frontends.server.test_sse_route import HELLO, EventStream
from tests.remote_team import MODEL_KEY, TOKEN, files_with, scripted_server
from tests.serving import hello, serving
from tests.streaming_run import running
from websockets.exceptions import ConnectionClosed

from ostler.core.tools import ToolCall
from ostler.testing.model_replies import ScriptedToolCall
from ostler.testing.model_server import calls, status, text
from ostler.workspace.file_reading import MAX_TEXT_BYTES

req = pytest.mark.req
AUTHOR = {f"GIT_{who}_{what}": "ada@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
CAT = {**LS, "name": "cat", "description": "Return the content of a file."}


def issue(ostler, user="ada"):
    """Return a new token."""
    return ostler("serve", "token", "issue", user).stdout.strip()


@pytest.fixture
def chat(ostler, models):
    """`with chat(reply, …) as host` starts a server and connects a bare tool host; settings are those of `server`."""

    @contextmanager
    def start(*replies, tools=(LS,), root="/work", heartbeat=8, limits=None):
        token = issue(ostler)
        settings = {"server": {"heartbeat_seconds": heartbeat, "limits": limits or {}}}
        (ostler.home / ".ostler" / "config.json").write_text(json.dumps(settings))
        with (
            serving(ostler, models, replies=replies) as server,
            server.client(token).host(tools=tools, root=root) as host,
        ):
            host.server = server
            yield host

    return start


@contextmanager
def sse_turn(ostler, models):
    """Start a turn with one tool call, without a WebSocket."""
    token, gate = issue(ostler), Gate()
    replies = [calls([("ls", {"path": "."})]), text("One file.", chunks=3).hold_after(2, gate.wait)]
    with serving(ostler, models, replies=replies) as server:
        client = server.client(token)
        stream = EventStream(client, client.create())
        stream.gate = gate
        stream.post(HELLO, {"type": "user.message", "content": "go"})
        yield server, stream
        stream.close()


def serve_calls(client, models, *requests):
    """Let a server call tools of a client that may write, one after the other. Return the results as they arrive."""

    async def act(turn):
        for index, (tool, arguments) in enumerate(requests):
            await turn.call(ToolCall(f"call-{index}", tool, arguments))

    with scripted_server(models, act) as server:
        client.shown = client("run", "--write", *server.flags, "go", env=TOKEN).stdout
    client.hello = server.hellos[0]
    assert [result.tool_call_id for result in server.results] == [f"call-{index}" for index in range(len(requests))]
    return server.results


def wait_until(condition, seconds=20):
    """Wait for what another process does."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


# Requirements


@req("SV-1", "SE-1")
def test_server_owns_the_session(team, client):
    """History and tool results are found in the server's store; the client keeps no conversation of its own."""
    (client.workspace / "a.txt").write_text("content\n")
    team.script(calls([("read", {"path": "a.txt"})]), text("marzipan reply"))
    assert "marzipan reply" in team.run(client, "a marzipan question").stdout
    stored = [(message["role"], message["content"]) for message in team.messages()]
    assert (stored[0], stored[-1]) == (("user", "a marzipan question"), ("assistant", "marzipan reply"))
    assert [content for role, content in stored if role == "tool"] == ["     1\tcontent"]
    assert files_with(client.home, "marzipan") == []
    assert team.sessions()[0]["workspaceRoot"] == str(client.workspace)


@req("SV-1")
def test_tools_run_on_the_client(team, client):
    """With server and client in different folders, file and git tools see and change only the client's."""
    (team.ostler.workspace / "a.txt").write_text("the server's")
    (client.workspace / "a.txt").write_text("the client's")
    subprocess.run(["git", "init", "-q", "-b", "trunk"], cwd=client.workspace, check=True)
    seen = team.script(
        calls([("read", {"path": "a.txt"}), ("git_status", {}), ("write", {"path": "b.txt", "content": "new"})]),
        text("done"),
    )
    assert team.run(client, "--write", "go").code == 0
    read, status_, written = team.tool_results(team.model.requests[seen + 1]).values()
    assert "the client's" in read and "the server's" not in read
    assert "trunk" in status_ and "created b.txt" in written
    assert (client.workspace / "b.txt").read_text() == "new"
    assert [path.name for path in team.ostler.workspace.iterdir()] == ["a.txt"]


@req("SV-2", "CL-6")
def test_answer_streams_to_the_client(team, client):
    """The client prints the first delta while the model is still held back from sending the second."""
    gate = Gate()
    team.script(text("The first line.\nThe second line.\n", chunks=2).hold_after(2, gate.wait))
    with running(client, "-o", "simple", *team.flags(), "go", env=team.env()) as screen:
        screen.wait_for("The first")
        assert "second" not in screen.text
        gate.open()
        assert "The second line." in screen.read_all()


@req("SV-5", "MD-3")
def test_model_keys_stay_on_the_server(team, client):
    """A client with no model key works, and no frame or file on its side ever contains the server's key."""
    seen = team.script(calls([("bash", {"command": "env"})]), text("no key here"))
    assert "no key here" in team.run(client, "show your environment").stdout
    assert team.model.requests[seen].headers["authorization"] == f"Bearer {MODEL_KEY}"
    assert b"no key here" in team.proxy.received and MODEL_KEY.encode() not in team.proxy.received
    assert MODEL_KEY not in "".join(team.tool_results(team.model.requests[seen + 1]).values())
    assert files_with(client.home, MODEL_KEY) == files_with(client.workspace, MODEL_KEY) == []


# Transport


@req("SV-2")
def test_one_websocket_carries_everything(chat):
    """User messages, deltas, tool calls, results, heartbeats and errors share one connection."""
    with chat(calls([("ls", {"path": "."})]), status(400, {"error": {"message": "bad"}}), heartbeat=0.2) as host:
        host.say("go")
        call = host.wait("tool.call")
        host.wait("heartbeat")
        host.answer(call, "a.txt")
        host.wait("error")
        host.wait("assistant.done")
        host.server.model.add_replies(text("Hello"))
        assert text_of(host.run_turn("again")) == "Hello"


@req("SV-3")
def test_sse_brings_deltas_and_tool_calls(ostler, models):
    """Without a WebSocket the same server messages arrive as server-sent events."""
    with sse_turn(ostler, models) as (_, stream):
        assert stream.receive()["type"] == "session.created"
        call = stream.receive()
        assert (call["type"], call["name"], call["arguments"]) == ("tool.call", "ls", {"path": "."})
        stream.post({"type": "tool.result", "toolCallId": call["toolCallId"], "output": "a.txt"})
        first = stream.receive()  # while the model is held back
        assert first["type"] == "assistant.delta" and first["content"] == "One"
        stream.gate.open()
        assert text_of([first, *stream.until_done()]) == "One file."


@req("SV-3", "SV-7")
def test_post_returns_tool_results(ostler, models):
    """A tool result sent by POST reaches the waiting call; sent a second time it changes nothing."""
    with sse_turn(ostler, models) as (server, stream):
        stream.receive()
        result = {"type": "tool.result", "toolCallId": stream.receive()["toolCallId"], "output": "a.txt"}
        stream.gate.open()
        assert stream.post(result)[0] == 202
        stream.until_done()
        assert stream.post({**result, "output": "b.txt"})[0] == 202
        (_, second) = server.model.requests
        assert "a.txt" in second.body.decode()
        messages = json.dumps(stream.client.messages(stream.session))
        assert "a.txt" in messages and "b.txt" not in messages


# Client to server


@req("SV-2", "SV-4")
def test_hello_carries_version_manifest_and_root(chat):
    """`hello` with `clientVersion`, `toolManifest` and `workspaceRoot` must be the first message."""
    with chat(tools=[LS, CAT], root="/home/ada/app") as host:
        described = host.client.describe(host.id)
        assert (described["tools"], described["workspaceRoot"]) == (["ls", "cat"], "/home/ada/app")
        with host.client.raw(host.client.create()) as other:
            other.send(json.dumps({"type": "user.message", "content": "go"}))
            assert json.loads(other.recv(10))["code"] == "hello_expected"
            with pytest.raises(ConnectionClosed):
                other.recv(10)


@req("SV-2")
def test_user_message_starts_a_turn(chat):
    """`user.message` with `sessionId` and `content` makes the server send that content to the model."""
    with chat(text("Hello")) as host:
        host.run_turn("What is this?")
        (request,) = host.server.model.requests
        assert request.json["messages"][-1] == {"role": "user", "content": "What is this?"}


@req("SV-2")
def test_tool_result_continues_the_turn(chat):
    """`tool.result` with `sessionId`, `toolCallId` and `output` puts the output into the next model request."""
    with chat(calls([("ls", {"path": "."})]), text("One file.")) as host:
        host.run_turn("go", output="only-file.txt")
        first, second = host.server.model.requests
        assert "only-file.txt" not in first.body.decode()
        assert second.json["messages"][-1]["role"] == "tool"
        assert second.json["messages"][-1]["content"] == "only-file.txt"


@req("SV-2", "CL-9")
def test_cancel_ends_the_turn(chat):
    """`cancel` stops model and open tool calls, and the session takes the next message."""
    gate = Gate()
    replies = [text("first", chunks=2).hold_after(2, gate.wait), calls([("ls", {"path": "."})]), text("third")]
    with chat(*replies) as host:
        host.say("one")
        host.wait("assistant.delta")
        host.send("cancel", sessionId=host.id)
        assert host.until_done()[-1]["metadata"]["reason"] == "cancelled"
        gate.open()
        host.say("two")
        call = host.wait("tool.call")
        host.send("cancel", sessionId=host.id)
        assert host.until_done()[-1]["metadata"]["reason"] == "cancelled"
        host.answer(call, "late")
        assert text_of(host.run_turn("three")) == "third"
        assert "late" not in host.server.model.requests[-1].body.decode()


# Server to client


@req("SV-2")
def test_session_created_names_the_session(chat):
    """`session.created` has the `sessionId` that every later message of the session uses."""
    with chat(calls([("ls", {"path": "."})]), text("Hello")) as host:
        assert (host.created["type"], host.created["sessionId"]) == ("session.created", host.id)
        assert {frame["sessionId"] for frame in host.run_turn("go")} == {host.id}


@req("SV-2")
def test_assistant_deltas_join_to_the_answer(chat):
    """The `content` of all `assistant.delta` messages, joined, is the stored answer."""
    answer = "Größe: 3 × 4 😀, and more " * 20
    gate = Gate()
    with chat(text(answer, chunks=30).hold_after(10, gate.wait)) as host:
        host.say("go")
        host.wait("assistant.delta")
        gate.open()
        host.until_done()
        deltas = [frame["content"] for frame in host.frames if frame["type"] == "assistant.delta"]
        assert len(deltas) > 1 and "".join(deltas) == answer
        assert host.client.messages(host.id)[-1]["content"] == answer


@req("SV-2")
def test_assistant_done_closes_the_turn_with_metadata(chat):
    """One `assistant.done` with `metadata` is the last message of a turn."""
    with chat(calls([("ls", {"path": "."})]), text("Hello"), text("Again")) as host:
        frames = [*host.run_turn("one"), *host.run_turn("two")]
        ends = [index for index, frame in enumerate(frames) if frame["type"] == "assistant.done"]
        assert len(ends) == 2 and ends[-1] == len(frames) - 1
        metadata = frames[ends[0]]["metadata"]
        assert metadata["reason"] == "done" and metadata["model"] and metadata["usage"]["tokensOut"] > 0


@req("SV-2", "SV-4")
def test_tool_call_carries_name_and_arguments(chat):
    """`tool.call` has `sessionId`, `toolCallId`, a `name` out of the manifest and the model's `arguments`."""
    with chat(calls([("cat", {"path": "a b.txt"})]), text("ok"), tools=[LS, CAT]) as host:
        call = next(frame for frame in host.run_turn("go") if frame["type"] == "tool.call")
        assert (call["sessionId"], call["name"], call["arguments"]) == (host.id, "cat", {"path": "a b.txt"})
        offered = [tool["function"] for tool in host.server.model.requests[0].json["tools"]]
        assert [(tool["name"], tool["parameters"]) for tool in offered] == [
            (tool["name"], tool["inputSchema"]) for tool in (LS, CAT)
        ]
        assert call["toolCallId"]


@req("SV-2")
def test_error_carries_a_message(chat):
    """A failing model produces an `error` with `sessionId` and a readable `message`; the connection stays open."""
    with chat(status(400, {"error": {"message": "the prompt is bad"}}), text("Hello")) as host:
        error = next(frame for frame in host.run_turn("go") if frame["type"] == "error")
        assert error["sessionId"] == host.id and "the prompt is bad" in error["message"]
        assert "Traceback" not in error["message"]
        assert text_of(host.run_turn("again")) == "Hello"


@req("SV-2")
def test_heartbeat_keeps_a_quiet_connection(chat):
    """During a slow tool call, `heartbeat` messages arrive and the connection is not closed."""
    with chat(calls([("ls", {"path": "."})]), text("Hello"), heartbeat=0.1) as host:
        host.say("go")
        call = host.wait("tool.call")
        for _ in range(3):
            assert host.receive()["type"] == "heartbeat"
        host.answer(call, "a.txt")
        assert text_of(host.until_done()) == "Hello"
    with chat() as host:
        assert 0 < host.created["limits"]["heartbeat"] <= 10


# Correlation


@req("SV-2")
def test_tool_call_id_is_the_servers(chat):
    """The `toolCallId` on the wire is the id under which the server's history holds that call."""
    with chat(calls([("ls", {"path": "."})]), text("Hello")) as host:
        call = next(frame for frame in host.run_turn("go") if frame["type"] == "tool.call")
        stored = host.client.messages(host.id)
        assert [c["toolCallId"] for message in stored for c in message.get("toolCalls", ())] == [call["toolCallId"]]
        assert [m["toolCallId"] for m in stored if m["role"] == "tool"] == [call["toolCallId"]]


@req("SV-2")
def test_client_echoes_the_tool_call_id(team, client):
    """Two concurrent calls each get their own result; a result with an unknown id is rejected."""
    for name in ("one", "two"):
        (client.workspace / name).write_text(f"content of {name}")
    both = [ScriptedToolCall("read", {"path": name}, f"call-{name}") for name in ("one", "two")]
    seen = team.script(calls(both), text("done"))
    assert team.run(client, "go").code == 0
    results = team.tool_results(team.model.requests[seen + 1])
    assert results == {"call-one": "     1\tcontent of one", "call-two": "     1\tcontent of two"}
    with team.server.client(team.token).host() as host:
        host.send("tool.result", sessionId=host.id, toolCallId="unknown", output="x")
        assert host.wait("error")["code"] == "unknown_call"


# Server side


@req("SV-2", "SV-5")
def test_post_sessions_authenticates_and_returns_an_id(ostler, models):
    """`POST /api/agent/sessions` answers a token with a `sessionId`, and no token with 401."""
    token = ostler("serve", "token", "issue", "ada").stdout.strip()
    with serving(ostler, models) as server:
        status, session = server.request("POST", "/api/agent/sessions", token, {})
        assert status == 201
        assert session["sessionId"]
        assert server.request("POST", "/api/agent/sessions", "", {})[0] == 401


@req("SV-2", "SV-5")
def test_stream_endpoint_serves_its_own_session(ostler, models):
    """`WS /api/agent/sessions/{id}/stream` serves that session to its owner only, and no unknown session."""
    ada, bob = (ostler("serve", "token", "issue", user).stdout.strip() for user in ("ada", "bob"))
    with serving(ostler, models) as server:
        session = server.request("POST", "/api/agent/sessions", ada, {})[1]["sessionId"]
        with server.websocket(session, ada) as stream:
            assert hello(stream)["sessionId"] == session
        assert server.refused_websocket(session, bob) == 404
        assert server.refused_websocket("unknown", ada) == 404


@req("SV-1", "SV-8")
def test_session_store_survives_a_restart(ostler, models):
    """After a restart, id, messages, tool manifest and workspace root are restored and the session continues."""
    token = issue(ostler)
    with serving(ostler, models, replies=[calls([("ls", {"path": "."})]), text("One.")]) as server:
        with server.client(token).host(tools=[LS, CAT], root="/home/ada/app") as host:
            host.run_turn("first", output="a.txt")
        before = server.client(token).describe(host.id), server.client(token).messages(host.id)
    with serving(ostler, models, replies=[text("Two.")]) as server:
        client = server.client(token)
        after = client.describe(host.id), client.messages(host.id)
        assert after[1] == before[1] and [m["role"] for m in after[1]] == ["user", "assistant", "tool", "assistant"]
        for name in ("sessionId", "tools", "workspaceRoot", "title", "turns", "epoch"):
            assert after[0][name] == before[0][name]
        with client.host(host.id, tools=[LS, CAT], root="/home/ada/app") as again:
            assert text_of(again.run_turn("second")) == "Two."
        body = server.model.requests[0].body.decode()
        assert "first" in body and "a.txt" in body and "One." in body


@req("SV-1", "EN-2")
def test_second_message_sees_the_first(chat):
    """The model request of the second message holds the first one, its tool results and its answer."""
    with chat(calls([("ls", {"path": "."})]), text("One file."), text("Two.")) as host:
        host.run_turn("first", output="a.txt")
        host.run_turn("second")
        messages = host.server.model.requests[-1].json["messages"]
        assert [(m["role"], m.get("content")) for m in messages[-5:] if m["role"] != "assistant"] == [
            ("user", "first"),
            ("tool", "a.txt"),
            ("user", "second"),
        ]
        assert "One file." in [m.get("content") for m in messages if m["role"] == "assistant"]


@req("SV-1", "EN-2")
def test_run_tool_waits_for_the_client(team, client):
    """The server calls the model again only after it has the client's result of the forwarded call."""
    wait = "touch running; while [ ! -e go ]; do sleep 0.02; done; echo finished"
    seen = team.script(calls([("bash", {"command": wait})]), text("The wait is over."))
    with running(client, "--write", *team.flags(), "go", env=team.env()) as screen:
        screen.wait_for("bash")
        wait_until((client.workspace / "running").exists)
        assert len(team.model.requests) == seen + 1
        (client.workspace / "go").touch()
        screen.wait_for("The wait is over.")
    assert "finished" in str(team.tool_results(team.model.requests[seen + 1]))


# Tool validation


@req("SV-4")
def test_tool_outside_the_manifest_is_not_forwarded(chat):
    """A call of an undeclared tool is returned to the model as an error; the client gets nothing."""
    with chat(calls([("rm", {"path": "."})]), text("Sorry.")) as host:
        frames = host.run_turn("go")
        assert "tool.call" not in [frame["type"] for frame in frames]
        answer = host.server.model.requests[1].json["messages"][-1]
        assert answer["role"] == "tool" and "no tool 'rm'" in answer["content"]


@req("SV-4", "TL-8")
def test_arguments_must_match_the_declared_schema(chat):
    """Arguments that violate the manifest's schema are returned to the model as an error; the client gets nothing."""
    wrong = [{"path": 7}, {}, {"path": ["a"]}]
    with chat(*[calls([("ls", arguments)]) for arguments in wrong], text("Sorry.")) as host:
        frames = host.run_turn("go")
        assert "tool.call" not in [frame["type"] for frame in frames]
        for request in host.server.model.requests[1:]:
            answer = request.json["messages"][-1]
            assert answer["role"] == "tool" and "do not match its schema" in answer["content"]


@req("SV-4", "TL-10")
def test_oversized_output_is_truncated_or_rejected(chat):
    """An output above the limit is truncated with a marker, or rejected, before it enters the history."""
    with chat(calls([("ls", {"path": "."})]), text("ok"), limits={"output_bytes": 2000}) as host:
        host.run_turn("go", output="a" * 10_000 + "b" * 10_000)
        (stored,) = [m["content"] for m in host.client.messages(host.id) if m["role"] == "tool"]
        assert len(stored) < 2500 and stored.startswith("aaa") and stored.endswith("bbb")
        marker = stored.strip("ab")
        assert marker.strip(), "nothing says that something was left out"
        assert host.server.model.requests[1].json["messages"][-1]["content"] == stored


# Client side


@req("SV-2")
def test_connect_command_chats(team, client, models):
    """`ostler connect` sends `hello`, sends the user's input as `user.message` and prints the deltas."""

    async def greet(turn):
        turn.say("Hello ")
        turn.say("there.")

    with scripted_server(models, greet) as server:
        address = server.flags[1].removeprefix("remote:")
        shown = client("connect", address, "--plain", stdin="good morning\n", env=TOKEN).stdout
    assert server.hellos[0].tool_manifest and server.hellos[0].client_version
    assert [message.content for message in server.messages] == ["good morning"]
    assert "Hello there." in shown

    team.script(text("Welcome."))
    started = time.monotonic()
    paired = client("connect", team.server.line, "--plain", stdin="hi\n")
    assert "Welcome." in paired.stdout and "logged in" in paired.stderr
    assert time.monotonic() - started < 10
    assert client("login").stdout.strip() == team.server.url


@req("SV-6", "FS-2")
def test_client_refuses_paths_outside_the_root(client, models):
    """A server that requests `../secret`, or a symlink that leads outside, gets a failed result without content."""
    (client.home / "secret").write_text("the secret")
    (client.workspace / "link").symlink_to(client.home / "secret")
    requests = [("read", {"path": "../home/secret"}), ("read", {"path": "link"}), ("cat", {"path": "../home/secret"})]
    results = serve_calls(client, models, *requests)
    assert {result.status for result in results} <= {"failed", "denied"}
    assert "the secret" not in str(results)


@req("SV-6", "FS-4")
def test_client_limits_file_size(client, models):
    """A read or write above the client's limit is rejected or truncated by the client."""
    with (client.workspace / "huge.txt").open("wb") as file:
        file.truncate(MAX_TEXT_BYTES + 1)
    (client.workspace / "long.txt").write_text("words\n" * 1_000_000)
    more = {"filename": "huge.txt", "content": "more"}
    results = serve_calls(
        client, models, ("read_file", {"path": "huge.txt"}), ("cat", {"path": "long.txt"}), ("write_file_chunk", more)
    )
    assert [result.status for result in results] == ["failed", "ok", "failed"]
    assert len(results[1].output) < 100_000 and "line=" in results[1].output
    assert (client.workspace / "huge.txt").stat().st_size == MAX_TEXT_BYTES + 1


@req("SV-6", "FS-7")
def test_client_deletes_nothing_by_default(client, models):
    """A remote deletion, also inside a patch, is denied unless the client's own config allows it."""
    for name in ("a.txt", "b.txt"):
        (client.workspace / name).write_text("content\n")
    patch = {"patch": "*** Begin Patch\n*** Delete File: a.txt\n*** End Patch\n"}
    requests = [("patch", patch), ("rm", {"path": "b.txt"}), ("bash", {"command": "rm b.txt"})]
    assert "ok" not in {result.status for result in serve_calls(client, models, *requests)}
    assert {path.name for path in client.workspace.iterdir()} == {"a.txt", "b.txt"}
    (client.home / ".ostler" / "config.json").write_text('{"security": {"delete": "allow"}}')
    assert [result.status for result in serve_calls(client, models, ("patch", patch))] == ["ok"]
    assert not (client.workspace / "a.txt").exists()


# Tool additions


@req("TL-2", "TL-4", "FS-4")
def test_read_file_takes_a_line_range(client, models):
    """`read_file` with a range returns those lines only."""
    (client.workspace / "a.txt").write_text("".join(f"line {number}\n" for number in range(1, 10)))
    requests = [
        ("read_file", {"path": "a.txt", "start_line": 3, "end_line": 4}),
        ("read_file_range", {"path": "a.txt", "start": 3, "end": 4}),
        ("read", {"path": "a.txt", "line": 3, "limit": 2}),
    ]
    for result in serve_calls(client, models, *requests):
        assert "line 3" in result.output and "line 4" in result.output
        assert "line 2" not in result.output and "line 5\n" not in result.output


@req("TL-2")
def test_stat_gives_file_metadata(client, models):
    """`stat` returns kind, size and time of a path without its content."""
    (client.workspace / "a.txt").write_text("content")
    (result,) = serve_calls(client, models, ("stat", {"path": "a.txt"}))
    assert "file" in result.output and "7" in result.output and "20" in result.output
    assert "content" not in result.output


@req("TL-4", "TL-7")
def test_find_files_matches_a_glob(client, models):
    """`find_files` returns the workspace files that match the pattern."""
    for name in ("a.py", "src/b.py", "src/c.txt"):
        (client.workspace / name).parent.mkdir(exist_ok=True)
        (client.workspace / name).touch()
    (result,) = serve_calls(client, models, ("find_files", {"pattern": "**/*.py"}))
    assert set(result.output.split()) >= {"a.py", "src/b.py"}
    assert "c.txt" not in result.output


@req("TL-2")
def test_mkdir_makes_a_directory(client, models):
    """`mkdir` creates a folder, parents included, inside the workspace only."""
    inside, outside = serve_calls(client, models, ("mkdir", {"path": "a/b/c"}), ("mkdir", {"path": "../outside"}))
    assert (inside.status, (client.workspace / "a/b/c").is_dir()) == ("ok", True)
    assert outside.status != "ok" and not (client.workspace.parent / "outside").exists()


# Write-back


@req("TL-2", "TL-4")
def test_each_chunk_is_on_disk_when_its_call_returns(client, models):
    """Between two `write_file_chunk` calls the file already holds the first part."""
    states = []

    async def write(turn):
        for index, part in enumerate(("first\n", "second\n")):
            chunk = {"filename": "out.txt", "content": part, "truncate": index == 0}
            await turn.call(ToolCall(f"chunk-{index}", "write_file_chunk", chunk))
            states.append((client.workspace / "out.txt").read_text())

    with scripted_server(models, write) as server:
        assert client("run", "--write", *server.flags, "go", env=TOKEN).code == 0
    assert states == ["first\n", "first\nsecond\n"]


@req("SV-6")
def test_client_prints_what_was_written(client, models):
    """Results name the written paths, and the client prints a short list of them at the end of the turn."""
    requests = [
        ("write_file", {"filename": "a.txt", "content": "one\n"}),
        ("write", {"path": "b/c.txt", "content": "two"}),
    ]
    results = serve_calls(client, models, *requests)
    assert [result.written for result in results] == [("a.txt",), ("b/c.txt",)]
    assert "on this machine: created a.txt (+1 -0), created b/c.txt (+1 -0)" in client.shown


# Security and policy


@req("SV-5")
def test_one_token_opens_rest_and_websocket(ostler, models):
    """The same bearer token works on both; a wrong or revoked one works on neither."""
    token = ostler("serve", "token", "issue", "ada").stdout.strip()
    with serving(ostler, models) as server:
        session = server.request("POST", "/api/agent/sessions", token, {})[1]["sessionId"]
        with server.websocket(session, token) as stream:
            assert hello(stream)["type"] == "session.created"
        ostler("serve", "token", "revoke", token.split("_")[1])
        for refused in (token, token[:-1], "wrong"):
            assert server.request("GET", f"/api/agent/sessions/{session}", refused)[0] == 401
            assert server.refused_websocket(session, refused) == 401


@req("SV-6", "FS-1")
def test_client_sends_a_normalised_root(client, models):
    """Started through a symlink or with `--cwd a/../b`, the client announces the resolved root."""

    async def rest(turn):
        turn.say("ok")

    other = client.workspace / "other"
    other.mkdir()
    (client.workspace / "link").symlink_to(other)
    for folder in ("link", "other/../other", "./link/../link"):
        with scripted_server(models, rest) as server:
            assert client("run", "--cwd", folder, *server.flags, "go", env=TOKEN).code == 0
        assert server.hellos[0].workspace_root == str(other), folder


@req("SV-4", "SV-6")
def test_only_manifest_tools_are_callable(client, models):
    """A tampered server that calls an undeclared tool gets a failed result from the client itself."""
    requests = [("launch_missiles", {}), ("task", {"agent": "explore", "prompt": "x"}), ("mcp__files__burn", {})]
    results = serve_calls(client, models, *requests)
    assert [result.status for result in results] == ["failed"] * 3
    assert all("manifest" in result.output for result in results)


@req("SV-4")
def test_tool_calls_per_minute_are_limited(chat):
    """Calls above the rate are rejected with an error that names the limit."""
    with chat(
        *[calls([("ls", {"path": "."})]) for _ in range(3)], text("ok"), limits={"tool_calls_per_minute": 2}
    ) as host:
        forwarded = [frame for frame in host.run_turn("go") if frame["type"] == "tool.call"]
        assert len(forwarded) == 2
        assert "more than 2 calls per minute" in host.server.model.requests[3].json["messages"][-1]["content"]


# Observability


@req("SV-9")
def test_server_logs_each_tool_call(chat, ostler):
    """A line per call has session, tool, duration and output size, and no content."""
    with chat(calls([("ls", {"path": "hidden-path"})]), text("hidden-answer")) as host:
        host.run_turn("hidden-prompt", output="hidden-output")
    log = (ostler.home / ".ostler" / "server" / "log.jsonl").read_text()
    (call,) = [line for line in map(json.loads, log.splitlines()) if line["text"] == "tool call"]
    assert (call["session"], call["tool"], call["status"]) == (host.id, "ls", "ok")
    assert call["ms"] >= 0 and call["output_bytes"] == len("hidden-output") and call["argument_bytes"] > 10
    (done,) = [frame for frame in host.frames if frame["type"] == "assistant.done"]
    assert call["trace"] == done["traceId"]
    assert "hidden" not in log


@req("SV-9")
def test_client_logs_calls_failures_and_writes(client, models):
    """The client's log lists which calls ran, which failed and which files were written."""
    requests = [
        ("write", {"path": "a.txt", "content": "hidden-text"}),
        ("read", {"path": "missing-file"}),
        ("nothing", {}),
    ]
    serve_calls(client, models, *requests)
    log = (client.home / ".ostler" / "logs" / "ostler.log").read_text()
    lines = [line for line in log.splitlines() if "ostler.remote" in line]
    assert any("tool=write status=ok" in line and "written=a.txt" in line for line in lines)
    assert any("tool=read status=failed" in line for line in lines)
    assert any("refused a call" in line and "nothing" in line for line in lines)
    assert "hidden-text" not in log


@req("SV-9")
def test_trace_id_is_in_both_logs(team, client):
    """The messages and the logs of both sides have one trace id per turn."""
    (client.workspace / "a.txt").write_text("content")
    team.script(calls([("read", {"path": "a.txt"})]), text("done"))
    assert team.run(client, "go").code == 0
    session = team.sessions()[0]["sessionId"]
    file = team.ostler.home / ".ostler" / "server" / "log.jsonl"
    while not file.exists() or '"turn ended"' not in file.read_text():  # it is written by a thread of the server
        time.sleep(0.01)
    ours = [
        line
        for line in map(json.loads, file.read_text().splitlines())
        if line.get("session") == session and line.get("trace")
    ]
    (trace,) = {line["trace"] for line in ours}
    assert {line["text"] for line in ours} >= {"tool call"}
    assert f"trace={trace}" in (client.home / ".ostler" / "logs" / "ostler.log").read_text()


# Backward compatibility


@req("SV-10")
def test_legacy_chat_stream_still_works(ostler, models):
    """`POST /api/chat/stream` streams a plain chat as server-sent events with a deprecation notice."""
    token = issue(ostler)
    gate = Gate()
    with serving(ostler, models, replies=[text("Hello there", chunks=3).hold_after(2, gate.wait)]) as server:
        answer = server.client(token).open("POST", "/api/chat/stream", {"message": "hi"})
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        assert answer.headers["Deprecation"] == "true" and "/api/agent/sessions" in answer.headers["Link"]
        first = answer.readline().decode()[6:]  # while the model is held back
        gate.open()
        *events, end = [first, *(line[6:] for line in answer.read().decode().splitlines() if line)]
        pieces = [json.loads(event).get("content", "") for event in events]
        assert "".join(pieces) == "Hello there" and pieces[0] == "Hell"
        assert end == "[DONE]"
        assert server.request("POST", "/api/chat/stream", "", {"message": "hi"})[0] == 401


@req("SV-10", "SV-2")
def test_agent_path_is_additive(chat):
    """A legacy chat and an agent session run on one server at the same time, independently."""
    gate = Gate()
    with chat(text("from the session", chunks=2).hold_after(2, gate.wait), text("from the chat")) as host:
        host.say("go")
        host.wait("assistant.delta")
        answer = host.client.open("POST", "/api/chat/stream", {"message": "hi"}).read().decode()
        assert "from the chat" in answer and answer.endswith("data: [DONE]\n\n")
        gate.open()
        host.until_done()
        assert text_of(host.frames) == "from the session"
        assert [m["content"] for m in host.client.messages(host.id)] == ["go", "from the session"]


# Testing


@req("SV-4")
def test_manifest_validation(chat):
    """Manifests with duplicate names, invalid schemas or excessive size are rejected at `hello`, with a reason."""
    deep = {"type": "object"}
    for _ in range(100):
        deep = {"type": "object", "properties": {"a": deep}}
    refused = {
        "two tools named ls": [LS, LS],
        "not a usable tool name": [{**LS, "name": "a b"}],
        "cannot be used": [{**LS, "inputSchema": {"type": "strange"}}],
        "schema of ls": [{**LS, "inputSchema": deep}],
        "more than 65536 bytes": [{**LS, "inputSchema": {"description": "x" * 70_000}}],
        "at most 256": [{**LS, "name": f"tool{number}"} for number in range(300)],
    }
    with chat() as host:
        for words, tools in refused.items():
            with host.client.host(host.client.create(), tools=tools) as other:
                assert (other.created["type"], other.created["code"]) == ("error", "bad_manifest")
                assert words in other.created["message"]
                assert other.closed()[0] == 4422


@req("SV-6", "FS-2")
def test_path_policy(client, models):
    """A table of hostile paths (climbing, absolute, look-alike, symlink, NUL) is denied by the tool host."""
    outside = client.workspace.parent / "outside"
    outside.mkdir()
    (outside / "secret").write_text("the secret")
    (client.workspace / "folder").symlink_to(outside)
    (client.workspace / "file").symlink_to(outside / "secret")
    paths = [
        "../outside/secret",
        "a/../../outside/secret",
        str(outside / "secret"),
        "folder/secret",
        "file",
        "..\\outside\\secret",
        "\u2024\u2024/outside/secret",
        "..%2foutside%2fsecret",
        "~/../outside/secret",
        "file:///" + str(outside / "secret"),
        "a.txt\0/../../outside/secret",
        "/proc/self/environ",
        "/dev/stdin",
    ]
    reads = [("read", {"path": path}) for path in paths]
    writes = [("write", {"path": path, "content": "changed"}) for path in paths]
    results = serve_calls(client, models, *reads, *writes)
    assert "the secret" not in str(results)
    assert (outside / "secret").read_text() == "the secret"
    assert [path.name for path in outside.iterdir()] == ["secret"]
    assert {result.status for result in results[: len(paths)]} <= {"failed", "denied"}


@req("SV-6", "TL-3")
def test_tool_dispatch(client, models):
    """Every tool of the manifest, called over the wire, reaches its own implementation and returns its result."""
    (client.workspace / "a.txt").write_text("one\ntwo\n")
    git = {"cwd": client.workspace, "check": True, "env": {**os.environ, **AUTHOR}}
    for command in ("init -q", "add .", "commit -qm first"):
        subprocess.run(["git", *command.split()], **git)
    cases = {
        "read": ({"path": "a.txt"}, "one"),
        "list": ({"path": "."}, "a.txt"),
        "glob": ({"pattern": "*.txt"}, "a.txt"),
        "grep": ({"pattern": "two"}, "two"),
        "stat": ({"path": "a.txt"}, "file"),
        "mkdir": ({"path": "made"}, "made"),
        "write": ({"path": "b.txt", "content": "b"}, "created b.txt"),
        "edit": ({"path": "a.txt", "old": "one", "new": "1"}, "a.txt"),
        "patch": ({"patch": "*** Begin Patch\n*** Add File: c.txt\n+c\n*** End Patch\n"}, "c.txt"),
        "write_chunk": ({"path": "d.txt", "content": "d", "final": True}, "d.txt"),
        "bash": ({"command": "echo from the shell"}, "from the shell"),
        "git_status": ({}, "a.txt"),
        "git_diff": ({}, "-one"),
        "git_log": ({}, "first"),
        "git_show": ({"ref": "HEAD"}, "first"),
        "git_blame": ({"path": "a.txt"}, "two"),
        "todowrite": ({"todos": [{"content": "wash up", "status": "pending"}]}, "wash up"),
        "todoread": ({}, "wash up"),
    }
    results = serve_calls(client, models, *((tool, arguments) for tool, (arguments, _) in cases.items()))
    assert {tool.name for tool in client.hello.tool_manifest.tools} == set(cases)
    for (tool, (_, expected)), result in zip(cases.items(), results, strict=True):
        assert (result.status, expected in result.output) == ("ok", True), (tool, result.output)


@req("SV-1", "SV-2")
def test_end_to_end_session_with_a_mock_tool_host(chat):
    """A scripted client runs a whole session: hello, message, tool call, result, deltas, done."""
    with chat(calls([("ls", {"path": "."}), ("cat", {"path": "a.txt"})]), text("It says hi."), tools=[LS, CAT]) as host:
        host.say("What does the file say?")
        results = {"ls": "a.txt", "cat": "hi"}
        for _ in results:
            call = host.wait("tool.call")
            host.answer(call, results[call["name"]])
        frames = host.until_done()
        assert text_of(frames) == "It says hi." and frames[-1]["metadata"]["reason"] == "done"
        roles = [message["role"] for message in host.client.messages(host.id)]
        assert roles == ["user", "assistant", "tool", "tool", "assistant"]


@req("TL-2", "SV-4")
def test_large_output_through_chunked_writes(team, client):
    """A file of several megabytes, sent in chunks through the server, is on the client's disk byte for byte."""
    parts = [f"part {number} ✓ ".encode() * 25_000 for number in range(12)]
    requests = [
        calls([("write_chunk", {"path": "big.txt", "content": part.decode(), "final": part is parts[-1]})])
        for part in parts
    ]
    team.script(*requests, text("written"))
    assert "written" in team.run(client, "--write", "go").stdout
    written = (client.workspace / "big.txt").read_bytes()
    assert len(written) > 3_000_000
    assert hashlib.sha256(written).digest() == hashlib.sha256(b"".join(parts)).digest()
