"""Specification 001, the JolliAgent CLI: a server with the model, a client that runs the tools; protocol and policy."""

import json
from contextlib import contextmanager

import pytest
from tests.frontends.server.server_client import LS, Gate, text_of
from tests.frontends.server.test_sse_route import HELLO, EventStream
from tests.serving import hello, serving
from websockets.exceptions import ConnectionClosed

from ostler.testing.model_server import calls, status, text

req, missing = pytest.mark.req, pytest.mark.missing
SERVER = "`ostler serve`"
CLIENT = "`ostler connect`"
BOTH = "`ostler serve` with `ostler connect`"
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


# Requirements


@req("SV-1", "SE-1")
@missing(BOTH)
def test_server_owns_the_session():
    """History and tool results are found in the server's store; the client keeps no conversation of its own."""
    raise NotImplementedError


@req("SV-1")
@missing(BOTH)
def test_tools_run_on_the_client():
    """With server and client in different folders, file and git tools see and change only the client's."""
    raise NotImplementedError


@req("SV-2", "CL-6")
@missing(BOTH)
def test_answer_streams_to_the_client():
    """The client prints the first delta while the model is still held back from sending the second."""
    raise NotImplementedError


@req("SV-5", "MD-3")
@missing(BOTH)
def test_model_keys_stay_on_the_server():
    """A client with no model key works, and no frame or file on its side ever contains the server's key."""
    raise NotImplementedError


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
@missing(BOTH)
def test_client_echoes_the_tool_call_id():
    """Two concurrent calls each get their own result; a result with an unknown id is rejected."""
    raise NotImplementedError


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
@missing(BOTH)
def test_run_tool_waits_for_the_client():
    """The server calls the model again only after it has the client's result of the forwarded call."""
    raise NotImplementedError


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
@missing(CLIENT)
def test_connect_command_chats():
    """`ostler connect` sends `hello`, sends the user's input as `user.message` and prints the deltas."""
    raise NotImplementedError


@req("SV-6", "FS-2")
@missing(CLIENT)
def test_client_refuses_paths_outside_the_root():
    """A server that requests `../secret`, or a symlink that leads outside, gets a failed result without content."""
    raise NotImplementedError


@req("SV-6", "FS-4")
@missing(CLIENT)
def test_client_limits_file_size():
    """A read or write above the client's limit is rejected or truncated by the client."""
    raise NotImplementedError


@req("SV-6", "FS-7")
@missing(CLIENT)
def test_client_deletes_nothing_by_default():
    """A remote deletion, also inside a patch, is denied unless the client's own config allows it."""
    raise NotImplementedError


# Tool additions


@req("TL-2", "TL-4", "FS-4")
@missing("the tools a remote host shows")
def test_read_file_takes_a_line_range():
    """`read_file` with a range returns those lines only."""
    raise NotImplementedError


@req("TL-2")
@missing("the tools a remote host shows")
def test_stat_gives_file_metadata():
    """`stat` returns kind, size and time of a path without its content."""
    raise NotImplementedError


@req("TL-4", "TL-7")
@missing("the tools a remote host shows")
def test_find_files_matches_a_glob():
    """`find_files` returns the workspace files that match the pattern."""
    raise NotImplementedError


@req("TL-2")
@missing("the tools a remote host shows")
def test_mkdir_makes_a_directory():
    """`mkdir` creates a folder, parents included, inside the workspace only."""
    raise NotImplementedError


# Write-back


@req("TL-2", "TL-4")
@missing("write_file_chunk")
def test_each_chunk_is_on_disk_when_its_call_returns():
    """Between two `write_file_chunk` calls the file already holds the first part."""
    raise NotImplementedError


@req("SV-6")
@missing(CLIENT)
def test_client_prints_what_was_written():
    """Results name the written paths, and the client prints a short list of them at the end of the turn."""
    raise NotImplementedError


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
@missing(CLIENT)
def test_client_sends_a_normalised_root():
    """Started through a symlink or with `--cwd a/../b`, the client announces the resolved root."""
    raise NotImplementedError


@req("SV-4", "SV-6")
@missing(BOTH)
def test_only_manifest_tools_are_callable():
    """A tampered server that calls an undeclared tool gets a failed result from the client itself."""
    raise NotImplementedError


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
@missing(CLIENT)
def test_client_logs_calls_failures_and_writes():
    """The client's log lists which calls ran, which failed and which files were written."""
    raise NotImplementedError


@req("SV-9")
@missing(BOTH)
def test_trace_id_is_in_both_logs():
    """The messages and the logs of both sides have one trace id per turn."""
    raise NotImplementedError


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
@missing(CLIENT)
def test_path_policy():
    """A table of hostile paths (climbing, absolute, look-alike, symlink, NUL) is denied by the tool host."""
    raise NotImplementedError


@req("SV-6", "TL-3")
@missing(CLIENT)
def test_tool_dispatch():
    """Every tool of the manifest, called over the wire, reaches its own implementation and returns its result."""
    raise NotImplementedError


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
@missing("write_file_chunk")
def test_large_output_through_chunked_writes():
    """A file of several megabytes, sent in chunks through the server, is on the client's disk byte for byte."""
    raise NotImplementedError
