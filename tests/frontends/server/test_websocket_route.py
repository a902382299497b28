"""Sessions over a WebSocket: turns, calls, refused messages, several clients."""

import json

import pytest
from tests.frontends.server.server_client import LS, Gate, text_of
from tests.tiers import slow
from websockets.exceptions import ConnectionClosed, InvalidStatus

from ostler.core.accounts import UserLimits
from ostler.core.events import MessageDone, Notice
from ostler.core.message import Message
from ostler.core.prompt import ImageContent, TextContent
from ostler.frontends.server.outbox import fit_event
from ostler.testing.model_server import calls, drop, status, text
from ostler.wire.event_codec import decode_event, encode_event
from ostler.wire.frames import MARGIN, MAX_FRAME_BYTES

req = pytest.mark.req
TODOS = {"name": "todoread", "description": "Todos.", "inputSchema": {"type": "object"}}


@req("SV-1", "SV-2")
def test_whole_turn_with_a_bare_tool_host(models, serve):
    with (
        models.playing(calls([("ls", {"path": "."})]), text("There is one file", chunks=3)) as model,
        serve(model).client.host() as host,
    ):
        frames = host.run_turn("List the files")
    assert host.created["type"] == "session.created" and host.created["sessionId"] == host.id
    call, *_, done = [frame for frame in frames if frame["type"] != "assistant.delta"]
    assert (call["name"], call["arguments"]) == ("ls", {"path": "."})
    assert text_of(frames) == "There is one file"
    assert done["metadata"]["reason"] == "done" and done["metadata"]["usage"]["tokensIn"] == 20
    assert all(frame["sessionId"] == host.id for frame in frames)
    assert {frame["type"] for frame in frames} == {"tool.call", "assistant.delta", "assistant.done"}
    assert "a.txt" in model.requests[1].body.decode()


@req("SV-2")
def test_first_message_must_be_hello(models, serve):
    with models.playing() as model:
        client = serve(model).client
        socket = client.raw(client.create())
        socket.send(json.dumps({"type": "user.message", "content": "hi"}))
        assert json.loads(socket.recv(5))["code"] == "hello_expected"
        with pytest.raises(Exception, match="4400"):
            socket.recv(5)


@req("SV-2")
def test_client_without_hello_is_closed(models, serve):
    with models.playing() as model:
        client = serve(model, hello_timeout=0.1).client
        socket = client.raw(client.create())
        assert json.loads(socket.recv(5))["code"] == "hello_expected"
        with pytest.raises(Exception, match="4408"):
            socket.recv(5)


@req("SV-2")
@pytest.mark.parametrize(
    ("data", "code"),
    [
        ("{", 4400),
        ("[]", 4400),
        ("null", 4400),
        ('{"no": "type"}', 4400),
        ('{"type": 7}', 4400),
        ("[" * 100_000, 4400),
        (b"\x00\x01", 4400),
        ('{"type": "\ud800"}'.encode("utf-8", "surrogatepass").decode("latin-1"), None),
    ],
)
def test_data_that_is_no_message_closes_the_connection(models, serve, data, code):
    with models.playing() as model:
        host = serve(model).client.host()
        host.socket.send(data)
        if code is None:
            host.send("cancel")
            host.socket.close()
        else:
            assert host.closed()[0] == code


@req("SV-2")
def test_unknown_types_and_fields_are_ignored(models, serve):
    with models.playing(text("Hello")) as model, serve(model).client.host(colour="red") as host:
        host.send("from.the.future", sessionId=host.id, value=[1])
        assert text_of(host.run_turn("hi", mood="good")) == "Hello"


@req("SV-2")
@pytest.mark.parametrize(
    ("kind", "fields", "code"),
    [
        ("user.message", {"content": 7}, "bad_message"),
        ("user.message", {}, "bad_message"),
        ("user.message", {"content": "  "}, "empty_message"),
        ("user.message", {"content": "hi", "clientMessageId": "x" * 129}, "bad_message"),
        ("user.message", {"content": "hi", "sessionId": "another"}, "wrong_session"),
        ("tool.result", {"toolCallId": "never-called", "output": "x"}, "unknown_call"),
        ("queue.withdraw", {"clientMessageId": "never-sent"}, "unknown_message"),
        ("approval.answer", {"askId": "never-asked"}, "unknown_ask"),
        ("session.change", {"requestId": "1", "change": {"type": "rename", "title": 5}}, "bad_message"),
        ("hello", {"clientVersion": "again"}, "bad_message"),
    ],
)
def test_invalid_message_is_answered_and_changes_nothing(models, serve, kind, fields, code):
    with models.playing(text("Hello")) as model, serve(model).client.host() as host:
        host.send(kind, **fields)
        error = host.receive()
        assert (error["type"], error["code"]) == ("error", code)
        assert text_of(host.run_turn("hi")) == "Hello"


@req("SV-4")
@pytest.mark.parametrize(
    "tools",
    [
        [LS, LS],
        [{**LS, "name": ""}],
        [{**LS, "name": "with space"}],
        [{**LS, "name": "x" * 65}],
        [{**LS, "inputSchema": {"type": "array"}}],
        [{**LS, "inputSchema": {"type": "object", "properties": {"a": {"type": "nonsense"}}}}],
        [{**LS, "inputSchema": {"$ref": "https://example.com/schema"}}],
        [{**LS, "inputSchema": {"type": "object", "description": "x" * 70_000}}],
        [{**LS, "description": "x" * 20_000}],
        [{**LS, "name": f"tool{number}"} for number in range(257)],
    ],
)
def test_manifest_is_refused_at_hello(models, serve, tools):
    with models.playing() as model:
        host = serve(model).client.host(tools=tools)
        assert (host.created["type"], host.created["code"]) == ("error", "bad_manifest")
        assert host.closed()[0] == 4422


@req("SV-4")
@pytest.mark.parametrize(
    ("call", "words"),
    [
        (("rm", {"path": "."}), "there is no tool 'rm'"),
        (("ls", {"path": 7}), "do not match its schema"),
        (("ls", {}), "do not match its schema"),
        (("todoread", {}), "there is no tool"),
    ],
)
def test_call_that_the_manifest_does_not_allow_is_not_forwarded(models, serve, call, words):
    with models.playing(calls([call]), text("Sorry")) as model, serve(model).client.host() as host:
        frames = host.run_turn("go")
    assert [frame["type"] for frame in frames] == ["assistant.delta", "assistant.done"]
    assert words in model.requests[1].json["messages"][-1]["content"]


@req("SV-4")
def test_bare_host_gets_the_calls_of_a_tool_that_the_server_has_too(models, serve):
    with (
        models.playing(calls([("todoread", {})]), text("ok")) as model,
        serve(model).client.host(tools=[TODOS]) as host,
    ):
        assert "todoread" in host.created["sessionTools"]
        assert next(frame["type"] for frame in host.run_turn("go")) == "tool.call"


@req("SV-4")
def test_declared_session_tool_runs_on_the_server(models, serve):
    with (
        models.playing(calls([("todoread", {})]), text("ok")) as model,
        serve(model).client.host(tools=[{**TODOS, "runsIn": "session"}]) as host,
    ):
        assert "tool.call" not in [frame["type"] for frame in host.run_turn("go")]


@req("SV-4")
def test_output_is_cut_to_the_limit(models, serve):
    with (
        models.playing(calls([("ls", {"path": "."})]), text("ok")) as model,
        serve(model, max_output=1000).client.host() as host,
    ):
        host.run_turn("go", output="x" * 100_000)
    content = model.requests[1].json["messages"][-1]["content"]
    assert len(content) < 1500 and "x" * 100 in content


@req("SV-4")
def test_calls_per_minute_are_limited(models, serve):
    one = calls([("ls", {"path": "."})])
    with models.playing(one, one, one, text("ok")) as model, serve(model, calls_per_minute=2).client.host() as host:
        frames = host.run_turn("go")
    assert [frame["type"] for frame in frames].count("tool.call") == 2
    assert "more than 2 calls per minute" in model.requests[3].json["messages"][-1]["content"]


@req("SV-2")
def test_output_of_any_json_type_reaches_the_model(models, serve):
    with models.playing(calls([("ls", {"path": "."})]), text("ok")) as model, serve(model).client.host() as host:
        host.run_turn("go", output={"files": ["ä", 1, None]})
    assert json.loads(model.requests[1].json["messages"][-1]["content"]) == {"files": ["ä", 1, None]}


@req("SV-2")
def test_output_with_a_name_that_is_not_unicode_reaches_the_model(models, serve):
    with models.playing(calls([("ls", {"path": "."})]), text("ok")) as model, serve(model).client.host() as host:
        host.run_turn("go", output="a\udc80.txt")
    assert model.requests[1].json["messages"][-1]["content"] == "a?.txt"


@req("SV-2")
def test_failed_call_is_reported_to_the_model(models, serve):
    with models.playing(calls([("ls", {"path": "."})]), text("ok")) as model, serve(model).client.host() as host:
        host.say("go")
        host.answer(host.wait("tool.call"), "", error="permission denied")
        host.until_done()
    assert "permission denied" in model.requests[1].json["messages"][-1]["content"]


@req("SV-2")
def test_second_result_for_a_call_changes_nothing(models, serve):
    with models.playing(calls([("ls", {"path": "."})]), text("ok")) as model, serve(model).client.host() as host:
        host.say("go")
        call = host.wait("tool.call")
        host.answer(call, "first")
        host.answer(call, "second")
        frames = host.until_done()
        host.answer(call, "third")
    assert "error" not in [frame["type"] for frame in frames]
    assert model.requests[1].json["messages"][-1]["content"] == "first"


@req("SV-2", "CL-9")
def test_cancel_ends_the_turn_and_stops_the_call(models, serve):
    with (
        models.playing(calls([("ls", {"path": "."})]), text("again")) as model,
        serve(model).client.host(features=["tool.cancel"]) as host,
    ):
        host.say("go")
        call = host.wait("tool.call")
        host.send("cancel", sessionId=host.id)
        stop = host.wait("tool.cancel")
        assert stop["toolCallId"] == call["toolCallId"]
        host.answer(call, "", status="cancelled")
        assert host.wait("assistant.done")["metadata"]["reason"] == "cancelled"
        assert text_of(host.run_turn("next")) == "again"


@req("SV-2")
def test_cancel_of_a_host_that_does_not_know_it_ends_the_turn_at_once(models, serve):
    with models.playing(calls([("ls", {"path": "."})]), text("again")) as model, serve(model).client.host() as host:
        host.say("go")
        call = host.wait("tool.call")
        host.send("cancel")
        assert host.wait("assistant.done")["metadata"]["reason"] == "cancelled"
        host.answer(call, "late")
        assert text_of(host.run_turn("next")) == "again"
    assert "outcome is unknown" in model.requests[1].body.decode()


@req("SV-2")
@pytest.mark.parametrize("reply", [status(400, {"error": {"message": "bad"}}), status(401, {"error": "no"})])
def test_failing_model_is_an_error_and_the_connection_stays_open(models, serve, reply):
    with models.playing(reply, text("ok")) as model, serve(model).client.host() as host:
        frames = host.run_turn("go")
        assert [frame["type"] for frame in frames] == ["error", "assistant.done"]
        assert frames[0]["code"] == "turn_failed" and frames[0]["message"]
        assert frames[1]["metadata"]["reason"] == "failed"
        assert text_of(host.run_turn("again")) == "ok"


@req("SV-2")
def test_reply_that_is_cut_off_fails_the_turn_and_keeps_its_text(models, serve):
    with (
        models.playing(text("Hello world", chunks=4).cut_after(400), text("ok")) as model,
        serve(model).client.host() as host,
    ):
        frames = host.run_turn("go")
        assert frames[-1]["metadata"]["reason"] == "failed" and frames[-1]["metadata"]["code"] == "cut"
        assert text_of(frames) == "Hel"
        assert text_of(host.run_turn("again")) == "ok"


@req("SV-2")
def test_heartbeats_during_a_slow_call(models, serve):
    with (
        models.playing(calls([("ls", {"path": "."})]), text("ok")) as model,
        serve(model, heartbeat=0.05).client.host() as host,
    ):
        host.say("go")
        call = host.wait("tool.call")
        assert [host.receive()["type"] for _ in range(3)] == ["heartbeat"] * 3
        host.answer(call, "x")
        assert host.wait("assistant.done")


@req("SV-2")
def test_viewer_sees_the_turn_but_gets_no_calls(models, serve):
    with models.playing(calls([("ls", {"path": "."})]), text("Hello")) as model:
        client = serve(model).client
        with client.host() as host, client.viewer(host.id) as viewer:
            assert viewer.created["role"] == "viewer" and viewer.created["hostConnected"]
            viewer.say("go")
            call = host.wait("tool.call")
            viewer.answer(call, "forged")
            assert viewer.wait("error")["code"] == "not_host"
            host.answer(call, "real")
            assert text_of(viewer.until_done()) == text_of(host.until_done()) == "Hello"
    assert model.requests[1].json["messages"][-1]["content"] == "real"


@req("SV-2")
def test_another_host_is_refused_until_it_takes_over(models, serve):
    with models.playing(calls([("ls", {"path": "."})]), text("ok")) as model:
        client = serve(model).client
        first = client.host(host={"id": "a", "name": "laptop"})
        refused = client.host(first.id, host={"id": "b", "name": "desktop"})
        assert refused.created["code"] == "host_taken" and "laptop" in refused.created["message"]
        assert refused.closed()[0] == 4409
        with client.host(first.id, host={"id": "b", "name": "desktop"}, takeHost=True) as second:
            assert first.closed()[0] == 4409
            second.say("go")
            call = second.wait("tool.call")
            assert call["host"]["name"] == "desktop"
            second.answer(call, "x")
            second.until_done()


@req("SV-2")
def test_messages_during_a_turn_wait_and_can_be_withdrawn_from_any_client(models, serve):
    with models.playing(calls([("ls", {"path": "."})]), text("one"), text("two")) as model:
        client = serve(model).client
        with client.host(features=["queue"]) as host, client.viewer(host.id, features=["queue"]) as viewer:
            host.say("first", clientMessageId="m1")
            assert host.wait("message.accepted")["status"] == "started"
            call = host.wait("tool.call")
            for name in ("m2", "m3"):
                host.say(f"text {name}", clientMessageId=name)
                assert host.wait("message.accepted")["status"] == "queued"
            viewer.send("queue.withdraw", clientMessageId="m2")
            while [item["clientMessageId"] for item in viewer.wait("queue.changed").get("items", [])] != ["m3"]:
                pass
            host.answer(call, "x")
            host.wait("assistant.done")
            host.wait("assistant.done")
    users = [m["content"] for m in model.requests[2].json["messages"] if m["role"] == "user"]
    assert any("text m3" in str(content) for content in users) and "text m2" not in str(users)


@req("SV-7")
def test_message_that_is_sent_twice_starts_one_turn(models, serve):
    with models.playing(text("one"), text("two")) as model, serve(model).client.host(features=["queue"]) as host:
        host.run_turn("first", clientMessageId="m1")
        host.say("first", clientMessageId="m1")
        host.wait("message.accepted", status="duplicate")
        assert text_of(host.run_turn("second", clientMessageId="m2")) == "two"


@req("SV-2")
def test_full_queue_refuses_messages(models, serve):
    gate = Gate()
    with (
        models.playing(text("one", chunks=2).hold_after(1, gate.wait), text("two")) as model,
        serve(model, queue=1).client.host(features=["queue"]) as host,
    ):
        host.say("first")
        host.wait("message.accepted")
        host.say("second", clientMessageId="m2")
        host.say("third", clientMessageId="m3")
        assert host.wait("error")["code"] == "queue_full"
        gate.open()
        host.until_done()
        host.until_done()


@req("SV-2")
def test_missing_host_is_shown_by_name_and_its_call_becomes_unknown(models, serve):
    with models.playing(calls([("ls", {"path": "."})]), text("ok")) as model:
        client = serve(model, host_wait=0.3).client
        host = client.host(host={"id": "a", "name": "laptop"})
        with client.viewer(host.id, features=["host"]) as viewer:
            host.say("go")
            host.wait("tool.call")
            host.cut()
            status = viewer.wait("host.status", connected=False)
            assert status["host"]["name"] == "laptop" and status["waitingCalls"] == 1
            assert text_of(viewer.until_done()) == "ok"
    assert "outcome is unknown: laptop was not connected" in model.requests[1].json["messages"][-1]["content"]


@req("SV-2")
def test_outcome_of_a_call_that_was_never_sent_is_unknown(models, serve):
    with models.playing(calls([("ls", {"path": "."})]), text("ok")) as model:
        client = serve(model, host_wait=0.2).client
        host = client.host()
        host.socket.close()
        with client.viewer(host.id) as viewer:
            viewer.say("go")
            viewer.until_done()
    content = model.requests[1].json["messages"][-1]["content"]
    assert "outcome is unknown" in content and "was not sent" in content


@req("SV-2")
def test_manifest_can_change(models, serve):
    with (
        models.playing(calls([("cat", {"path": "a"})]), text("ok")) as model,
        serve(model).client.host(features=["manifest"]) as host,
    ):
        host.send("manifest.change", toolManifest={"tools": [LS, LS]})
        assert host.wait("error")["code"] == "bad_manifest"
        host.send("manifest.change", toolManifest={"tools": [{**LS, "name": "cat"}]})
        assert host.wait("manifest.changed")["tools"] == ["cat"]
        assert host.run_turn("go")[0]["name"] == "cat"
    assert [tool["function"]["name"] for tool in model.requests[0].json["tools"]] == ["cat"]


@req("SV-2")
def test_client_that_floods_the_server_is_closed(models, serve):
    with models.playing() as model:
        host = serve(model, messages_per_minute=5).client.host()
        for _ in range(120):
            host.send("queue.withdraw", clientMessageId="x")
        assert host.closed()[0] == 4429
        assert any(frame.get("retryAfter") for frame in host.frames)


@req("SV-4")
def test_connecting_again_does_not_renew_the_limit_of_messages(models, serve):
    with models.playing() as model:
        client = serve(model, messages_per_minute=3).client
        session_id = client.create()
        for _ in range(3):
            with client.host(session_id) as host:
                host.send("queue.withdraw", clientMessageId="x")
                assert host.wait("error")["code"] == "unknown_message"
        with client.host(session_id) as host:
            host.send("queue.withdraw", clientMessageId="x")
            assert host.wait("error")["code"] == "rate_limited"


@req("SV-2")
def test_lost_model_connection_does_not_close_the_clients(models, serve):
    with models.playing(drop(), text("ok")) as model, serve(model).client.host() as host:
        assert text_of(host.run_turn("go")) == "ok"


@req("SV-5")
def test_session_of_another_user_does_not_exist(models, serve):
    with models.playing() as model:
        server = serve(model)
        session_id = server.client.create()
        other = server.client_of("eve")
        for target in (session_id, "unknown", "../../etc"):
            with pytest.raises(Exception, match="404"):
                other.raw(target.replace("/", "%2F"))
        assert other.request("GET", f"/api/agent/sessions/{session_id}")[0] == 404


@req("SV-2")
def test_sections_of_the_clients_workspace_are_in_the_system_prompt(models, serve):
    sections = [
        {"name": "rules", "text": "Use tabs.", "origin": "AGENTS.md"},
        {"name": "environment", "text": "Workspace: /home/ada\nSystem: Plan 9"},
    ]
    with models.playing(text("one"), text("two")) as model:
        client = serve(model).client
        with client.host(workspace={"sections": sections}) as host:
            host.run_turn("go")
        with client.host(root="/srv/app") as bare:
            bare.run_turn("go")
    first, second = (request.json["messages"][0]["content"] for request in model.requests)
    assert first.endswith("Use tabs.\n\nWorkspace: /home/ada\nSystem: Plan 9")
    assert second.endswith("Workspace: /srv/app") and "System:" not in second


@req("SV-2")
@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"connections_per_session": 1}, "the session has 1 connections"),
        ({"connections_per_user": 1}, "ada has 1 connections"),
        ({"open_sessions_per_user": 1}, "ada has 1 sessions in use"),
    ],
)
def test_connections_over_a_limit_are_refused_before_they_are_accepted(models, serve, limits, words):
    with models.playing() as model:
        client = serve(model, **limits).client
        with client.host() as host:
            session = client.create() if "open_sessions_per_user" in limits else host.id
            with pytest.raises(InvalidStatus) as caught:
                client.raw(session)
            assert caught.value.response.status_code == 429 and words in caught.value.response.body.decode()
            path = f"/api/agent/sessions/{session}"
            assert client.request("GET", f"{path}/stream")[0] == 429


@req("SV-2", "SV-7")
def test_results_and_cancel_are_taken_also_over_the_limit_of_messages(models, serve):
    many = calls([("ls", {"path": str(number)}) for number in range(30)])
    with (
        models.playing(many, many, text("one"), text("two")) as model,
        serve(model, messages_per_minute=2).client.host() as host,
    ):
        frames = host.run_turn("go", clientMessageId="m1")[:-1]
        assert "error" not in [frame["type"] for frame in frames]
        host.say("next")
        host.until_done()
        host.say("too many", clientMessageId="m3")
        refused = host.wait("error")
        assert (refused["code"], refused["clientMessageId"]) == ("rate_limited", "m3") and refused["retryAfter"] > 0
    assert len(model.requests[1].json["messages"]) > 30


@req("SV-2")
def test_cancel_is_taken_over_the_limit_of_messages(models, serve):
    with (
        models.playing(calls([("ls", {"path": "."})])) as model,
        serve(model, messages_per_minute=1).client.host() as host,
    ):
        host.say("go")
        host.wait("tool.call")
        host.say("more")
        assert host.wait("error")["code"] == "rate_limited"
        host.send("cancel")
        assert host.wait("assistant.done")["metadata"]["reason"] == "cancelled"


@req("SV-2")
@pytest.mark.parametrize(
    ("kind", "fields", "name"),
    [
        ("user.message", {"content": 7, "clientMessageId": "x"}, "clientMessageId"),
        ("user.message", {"content": " ", "clientMessageId": "x"}, "clientMessageId"),
        ("tool.result", {"toolCallId": "x", "status": "weird"}, "toolCallId"),
        ("tool.result", {"toolCallId": "x"}, "toolCallId"),
        ("session.change", {"requestId": "x", "change": {"type": "nonsense"}}, "requestId"),
        ("session.change", {"requestId": "x", "change": {"type": "rename", "title": 5}}, "requestId"),
        ("approval.answer", {"askId": "x", "decision": 5}, "askId"),
        ("approval.answer", {"askId": "x"}, "askId"),
        ("queue.withdraw", {"clientMessageId": "x"}, "clientMessageId"),
        ("user.message", {"content": "hi", "clientMessageId": "x", "sessionId": "another"}, "clientMessageId"),
    ],
)
def test_error_names_the_message_that_it_refers_to(models, serve, kind, fields, name):
    with models.playing() as model, serve(model).client.host() as host:
        host.send(kind, **fields)
        assert host.wait("error")[name] == "x"


@req("SV-4")
def test_call_with_a_result_that_is_too_large_ends(models, serve):
    with models.playing(calls([("ls", {"path": "."})]), text("ok")) as model, serve(model).client.host() as host:
        host.say("go")
        call = host.wait("tool.call")
        host.answer(call, "x" * 5_000_000)
        error = host.wait("error")
        assert (error["code"], error["toolCallId"]) == ("too_large", call["toolCallId"])
        assert text_of(host.until_done()) == "ok"
    assert "more than 4194304 bytes" in model.requests[1].json["messages"][-1]["content"]


@req("SV-2")
def test_large_data_that_is_no_message_closes_the_connection(models, serve):
    with models.playing() as model:
        client = serve(model).client
        host = client.host()
        host.socket.send("x" * 5_000_000)
        assert host.closed()[0] == 4400
        host = client.host(host.id)
        with pytest.raises(ConnectionClosed) as caught:
            host.socket.send("x" * 17_000_000)
            host.receive()
        assert caught.value.rcvd is None or caught.value.rcvd.code == 1009  # it may be lost while the rest is sent


@req("SV-2")
def test_call_with_an_invalid_result_ends(models, serve):
    with models.playing(calls([("ls", {"path": "."})]), text("ok")) as model:
        client = serve(model).client
        with client.host() as host, client.viewer(host.id) as viewer:
            host.say("go")
            call = host.wait("tool.call")
            viewer.answer(call, "forged", status="weird")
            assert viewer.wait("error")["code"] == "not_host"
            host.answer(call, "x", status="weird")
            error = host.wait("error")
            assert (error["code"], error["toolCallId"]) == ("bad_message", call["toolCallId"])
            assert text_of(host.until_done()) == "ok"
    content = model.requests[1].json["messages"][-1]["content"]
    assert "outcome is unknown" in content and "weird" in content


@req("SV-5")
def test_limits_of_one_user_replace_those_of_the_server(models, serve):
    with models.playing() as model:
        server = serve(model)
        server.accounts.set_limits("eve", UserLimits(connections=1, messages_per_minute=2))
        with server.client.host(), server.client.host(), server.client_of("eve").host() as host:
            with pytest.raises(InvalidStatus) as caught:
                server.client_of("eve").host()
            assert caught.value.response.status_code == 429
            for number in range(3):
                host.send("queue.withdraw", clientMessageId=str(number))
            while host.receive().get("code") != "rate_limited":
                pass


@req("SV-2")
def test_calls_of_a_host_that_went_away_are_shown_with_its_name_until_they_end(models, serve):
    with models.playing(calls([("ls", {"path": "."})]), text("ok")) as model:
        client = serve(model, host_wait=1.0).client
        first = client.host(host={"id": "a", "name": "laptop"})
        with client.viewer(first.id, features=["host"]) as viewer:
            first.say("go")
            first.wait("tool.call")
            first.socket.close()
            assert viewer.wait("host.status", connected=False)["waitingCalls"] == 1
            with client.host(first.id, host={"id": "b", "name": "desktop"}) as second:
                assert viewer.wait("host.status", connected=True)["host"]["name"] == "desktop"
                waiting = viewer.wait("host.status", connected=False)
                assert (waiting["host"]["name"], waiting["waitingCalls"]) == ("laptop", 1) and waiting["secondsLeft"]
                with client.viewer(first.id, features=["host"]) as late:
                    assert late.wait("host.status")["host"]["name"] == "laptop"
                ended = viewer.wait("host.status", connected=False)
                assert ended["host"]["name"] == "laptop" and not ended.get("waitingCalls")
                assert text_of(second.until_done()) == "ok"
    assert "laptop was not connected" in model.requests[1].json["messages"][-1]["content"]


@req("SV-2")
def test_steering_messages_that_the_cancelled_turn_did_not_read_start_the_next_one(models, serve):
    with (
        models.playing(calls([("ls", {"path": "."})]), text("one"), text("two"), text("three")) as model,
        serve(model).client.host(features=["queue"]) as host,
    ):
        host.say("first")
        host.wait("tool.call")
        for name in ("m5", "m6"):
            host.say(f"text {name}", clientMessageId=name, delivery="steer")
            host.wait("message.accepted", status="steered")
        host.say("text m7", clientMessageId="m7")
        host.wait("message.accepted", status="queued")
        host.send("cancel")
        assert host.wait("assistant.done")["metadata"]["reason"] == "cancelled"
        assert text_of(host.until_done()) == "one"
        assert text_of(host.until_done()) == "two"
        host.say("text m6", clientMessageId="m6")
        host.wait("message.accepted", status="duplicate")
        host.run_turn("last")
    texts = [
        [m["content"] for m in request.json["messages"] if m["role"] == "user" and "text m" in str(m["content"])]
        for request in model.requests[1:]
    ]
    steered, queued = ["text m5", "text m6"], "text m7"
    both = [*steered, queued]
    assert [[str(content)[:7] for content in found] for found in texts] == [steered, both, both]


@req("SV-2")
def test_approval_request_ends_when_its_host_disconnects(models, serve):
    with models.playing() as model:
        client = serve(model).client
        host = client.host(features=["approvals"])
        with client.viewer(host.id, features=["approvals"]) as viewer:
            permission = {"title": "run ls", "needs": []}
            host.send("approval.request", askId="q1", permission=permission)
            viewer.wait("approval.request", askId="q1")
            host.cut()
            viewer.wait("approval.resolved", askId="q1")


@req("SV-2")
def test_only_model_and_thinking_can_be_set(models, serve):
    with models.playing() as model:
        client = serve(model).client
        for name in ("foo", "profile", "mode", "agent"):
            refused = client.host(options={name: "x"})
            assert (refused.created["code"], refused.closed()[0]) == ("bad_change", 4400)
            assert f"'{name}', only model and thinking" in refused.created["message"]
        with client.host(options={"thinking": "low"}) as host:
            host.send(
                "session.change", requestId="1", change={"type": "set_option", "id": "profile", "value": "god_mode"}
            )
            assert host.wait("error", requestId="1")["code"] == "bad_change"


@req("SV-2")
def test_what_is_not_empty_is_sent(models, serve):
    with models.playing(calls([("ls", {"path": "."})]), text("ok")) as model, serve(model).client.host() as host:
        assert (host.created["role"], host.created["protocol"]) == ("host", 1)
        assert next(frame for frame in host.run_turn("go") if frame["type"] == "tool.call")["origin"] == "model"


@req("SV-2")
def test_repeated_result_of_a_call_that_is_in_no_record_is_no_error(models, serve):
    workspace = {"sections": [], "checks": True}
    edit = {"name": "edit", "description": "Edit.", "kind": "edit", "effects": True, "inputSchema": {"type": "object"}}
    with (
        models.playing(calls([("edit", {})]), text("ok"), text("again")) as model,
        serve(model).client.host(workspace=workspace, tools=[edit]) as host,
    ):
        host.say("go")
        asked = []
        while (frame := host.receive())["type"] != "assistant.done":
            if frame["type"] == "tool.call":
                asked.append(frame)
                host.answer(frame, "", data={"commands": []})
        assert asked[-1]["name"] == "ostler.project_checks"
        host.answer(asked[-1], "", data={"commands": []})
        assert "error" not in [frame["type"] for frame in host.run_turn("next")]


@req("SV-4")
def test_bytes_of_outputs_count(models, serve):
    one = calls([("ls", {"path": "."})])
    with models.playing(one, one, text("ok")) as model, serve(model, bytes_per_minute=1000).client.host() as host:
        frames = host.run_turn("go", output="x" * 5000)
    assert [frame["type"] for frame in frames].count("tool.call") == 1
    assert "more than 1000 bytes per minute" in model.requests[2].json["messages"][-1]["content"]


@req("SV-2")
def test_messages_that_are_sent_on_leave_space_for_more_fields(models, serve):
    with models.playing(text("ok")) as model, serve(model).client.host(features=["events", "queue"]) as host:
        host.say("x" * (MAX_FRAME_BYTES - 1000), clientMessageId="m1")
        error = host.wait("error")
        assert (error["code"], error["clientMessageId"]) == ("too_large", "m1")
        host.say("x" * (MAX_FRAME_BYTES - 2 * MARGIN), clientMessageId="m2")
        wanted = {"message.accepted", "assistant.done"}
        while not wanted <= {frame["type"] for frame in host.frames}:  # in either order: the one waits for the disk
            host.receive()
        assert [frame["status"] for frame in host.frames if frame["type"] == "message.accepted"] == ["started"]
        assert max(len(json.dumps(frame, ensure_ascii=False).encode()) for frame in host.frames) <= MAX_FRAME_BYTES


@req("SV-2")
@pytest.mark.parametrize("features", [[], slow(["events"])])
def test_no_message_of_the_server_is_larger_than_the_limit(models, serve, features):
    with models.playing(text("ä" * 3_000_000, chunks=12)) as model:
        with serve(model).client.host(features=features) as host:
            host.say("go")
            while (data := host.socket.recv(30)) and '"assistant.done"' not in data[:100]:
                assert len(data.encode()) <= MAX_FRAME_BYTES
                host.frames.append(json.loads(data))
        if not features:
            assert text_of(host.frames) == "ä" * 3_000_000


def test_event_that_is_too_large_is_shortened():
    image = ImageContent("image/png", b"x" * 3_000_000)
    message = Message("m", (TextContent("long " * 1_000_000), image))
    sent = decode_event(fit_event(encode_event(MessageDone(message)), 1_000_000))
    assert sent.message.id == "m" and sent.message.text.startswith("long long")
    calls_done = MessageDone(Message("m", tuple(TextContent("x" * 4000) for _ in range(1000))))
    assert isinstance(decode_event(fit_event(encode_event(calls_done), 1_000_000)), Notice)


@req("SV-1", "SV-2")
def test_notes_reach_the_model_and_are_not_shown_as_the_users_words(models, serve):
    with models.playing(text("Hello"), text("Again")) as model, serve(model).client.host() as host:
        host.run_turn("What is this?", notes=["You only plan.", "The user ran `ls`."])
        host.say("go on", notes=["No more notes."])
        host.until_done()
        prompts = [m["content"] for m in model.requests[1].json["messages"] if m["role"] == "user"]
        assert prompts == ["You only plan.\n\nThe user ran `ls`.\n\nWhat is this?", "No more notes.\n\ngo on"]
        asked = [m["content"] for m in host.client.messages(host.id) if m["role"] == "user"]
        assert asked == ["What is this?", "go on"]
        assert host.client.describe(host.id)["title"] == "What is this?"
