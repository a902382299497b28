"""The Agent Zero backend over real HTTP, with the real tool host."""

import asyncio
import json

import pytest

from ostler.backends.agent_zero.backend import AgentZeroBackend, ZeroPlan
from ostler.backends.agent_zero.message_api import MessageApiSettings, MessageApiTransport
from ostler.backends.agent_zero.server import ZeroServer, parse_server_url
from ostler.backends.agent_zero.workspace_context import ContextSender, WorkspaceContext
from ostler.core.events import MessageDone, Notice, RemoteCursor, ToolCalled, ToolFinished
from ostler.core.message import ThoughtPart
from ostler.core.sessions import Steer
from ostler.session.access import FixedAccess
from ostler.testing.fake_tool import FakeTool
from ostler.testing.session_fixture import ALLOW_ALL, make_prompt, open_test_session, run_turn
from ostler.testing.zero_server import ScriptedZeroServer, ZeroAnswer, zero_json, zero_lines, zero_reply, zero_sse
from ostler.workspace.local_workspace import LocalWorkspace

REQUEST = {"type": "tool_request", "tool_name": "probe", "command": "c", "reason": "r", "payload": {"subject": "x"}}


def make_backend(url, key="", **settings):
    origin, path = parse_server_url(url)

    async def probe(start, listener):
        server = ZeroServer(origin, path, key)
        return MessageApiTransport(server, MessageApiSettings(**{"poll_seconds": 0.01, **settings}), start, listener)

    return AgentZeroBackend(ZeroPlan(origin.address, "this-host"), [probe])


async def open_session(server, tmp_path, tools=(), url="", key="", journal=None, **settings):
    backend = make_backend(url or server.api_url, key, **settings)
    return await open_test_session(backend, tools, LocalWorkspace(str(tmp_path)), journal=journal)


def texts(events):
    return [event.message.text for event in events if isinstance(event, MessageDone) and event.message.text]


@pytest.mark.req("AZ-1")
@pytest.mark.parametrize(
    "answer",
    [
        zero_reply("Hello."),
        zero_json("Hello."),
        ZeroAnswer([b"Hello."], "text/plain"),
        zero_sse({"context_id": "c"}, {"delta": {"content": "Hel"}}, {"delta": {"content": "lo."}}),
        zero_sse({"delta": {"content": "Hel"}}, {"type": "final_response", "content": "Hello."}),
        zero_lines({"type": "status", "content": "busy"}, {"type": "final_response", "content": "Hello."}),
    ],
)
async def test_answer_in_every_format(answer, tmp_path):
    async with ScriptedZeroServer([answer]) as server:
        session = await open_session(server, tmp_path)
        events, ended = await run_turn(session, "hi")
        await session.aclose()
    assert (ended.reason, texts(events)) == ("done", ["Hello."])
    assert server.messages == [{"message": "hi", "lifetime_hours": 24}]


@pytest.mark.req("AZ-2")
async def test_context_id_is_sent_from_the_second_message_on_and_after_reopening(tmp_path):
    async with ScriptedZeroServer([zero_reply("1", "c-9"), zero_reply("2", "c-9"), zero_reply("3", "c-9")]) as server:
        session = await open_session(server, tmp_path)
        await run_turn(session, "one")
        await run_turn(session, "two")
        journal = session._journal
        await session.aclose()
        again = await open_session(server, tmp_path, journal=journal)
        await run_turn(again, "three")
        await again.aclose()
    assert [message.get("context_id") for message in server.messages] == [None, "c-9", "c-9"]


@pytest.mark.req("AZ-1")
@pytest.mark.parametrize(("given", "real"), [("/api_message", "/api"), ("/api/api_message", ""), ("", "/api")])
async def test_other_path_is_tried(given, real, tmp_path):
    async with ScriptedZeroServer([zero_reply("ok")], prefix=real, api_key="k") as server:
        session = await open_session(server, tmp_path, url=f"http://127.0.0.1:{server.port}{given}", key="k")
        events, ended = await run_turn(session, "hi")
        await session.aclose()
    assert (ended.reason, texts(events)) == ("done", ["ok"])


@pytest.mark.req("AZ-3")
@pytest.mark.parametrize("as_text", [True, False])
async def test_tool_request_runs_and_its_result_is_sent(as_text, tmp_path):
    tool = FakeTool("probe")
    first = (
        zero_reply(f"I look.\n```json\n{json.dumps(REQUEST)}\n```")
        if as_text
        else zero_sse(
            {"context_id": "ctx00001"}, {"type": "thinking", "content": "hm"}, {**REQUEST, "tool_call_id": "c1"}
        )
    )
    async with ScriptedZeroServer([first, zero_reply("Done.")]) as server:
        session = await open_session(server, tmp_path, [tool])
        events, ended = await run_turn(session, "look")
        await session.aclose()
    assert ended.reason == "done"
    assert len(tool.runs) == 1
    result = json.loads(server.messages[1]["message"])["tool_result"]
    assert (result["tool_name"], result["ok"], result["output"]) == ("probe", True, "probe ran")
    assert result["details"]["host"] == "this-host"
    assert result.get("tool_call_id") == (None if as_text else "c1")
    assert server.messages[1]["context_id"] == "ctx00001"
    assert texts(events)[-1] == "Done."


@pytest.mark.req("AZ-3")
async def test_stream_that_waits_for_the_result_gets_it(tmp_path):
    tool, posted = FakeTool("probe"), asyncio.Event()
    stream = zero_sse({"context_id": "c"}, REQUEST, posted.wait, {"type": "final_response", "content": "End."})
    inner = ZeroAnswer([b'{"type": "status", "content": "got it"}'])
    async with ScriptedZeroServer([stream, inner]) as server:
        session = await open_session(server, tmp_path, [tool])
        turn = session.start(make_prompt("go"))
        await server.wait_for_messages(2)
        posted.set()
        assert (await turn.wait()).reason == "done"
        await session.aclose()
    assert len(tool.runs) == 1


@pytest.mark.req("AZ-3")
async def test_endless_requests_reach_a_limit(tmp_path):
    tool = FakeTool("probe")
    answers = [zero_reply(json.dumps(REQUEST)) for _ in range(4)]
    async with ScriptedZeroServer(answers) as server:
        session = await open_session(server, tmp_path, [tool], max_rounds=3)
        _, ended = await run_turn(session, "go")
        await session.aclose()
    assert (ended.reason, len(tool.runs)) == ("limit", 3)


@pytest.mark.req("AZ-6")
@pytest.mark.parametrize(
    ("answer", "part"),
    [
        (zero_json({"error": "boom"}, 500), "boom"),
        (ZeroAnswer([b'{"error": "a "quoted" text"}'], status=500), 'a "quoted" text'),
        (zero_sse({"delta": {"content": "Half"}}, cuts=True), "closed the connection"),
    ],
)
async def test_error_is_a_final_response_and_fails_the_turn(answer, part, tmp_path):
    async with ScriptedZeroServer([answer, zero_reply("fine")]) as server:
        session = await open_session(server, tmp_path)
        events, ended = await run_turn(session, "hi")
        assert ended.reason == "failed"
        assert part in texts(events)[-1]
        assert (await run_turn(session, "again"))[1].reason == "done"
        await session.aclose()


@pytest.mark.req("AZ-6")
async def test_unreachable_server_is_a_final_response(tmp_path):
    session = await open_session(None, tmp_path, url="http://127.0.0.1:9/api_message")
    events, ended = await run_turn(session, "hi")
    await session.aclose()
    assert ended.reason == "failed"
    assert texts(events)[-1].startswith("The request to Agent Zero failed: ")


@pytest.mark.req("AZ-1")
async def test_log_is_shown_from_the_second_turn_on_and_items_are_replaced(tmp_path):
    hold = asyncio.Event()
    server = ScriptedZeroServer([zero_reply("one"), ZeroAnswer([hold.wait, b'{"response": "two"}'])])
    server.log = {"guid": "g", "items": [{"no": 0, "type": "agent", "kvps": {"thoughts": ["old"]}}]}
    async with server:
        session = await open_session(server, tmp_path)
        await run_turn(session, "first")
        server.log["items"] += [
            {"no": 1, "type": "agent", "kvps": {"thoughts": ["I plan"]}},
            {"no": 2, "type": "code_exe", "heading": "run", "content": "lin"},
        ]
        subscription = session.subscribe(since=2**62)
        turn = session.start(make_prompt("second"))
        async for envelope in subscription:
            if isinstance(envelope.event, ToolCalled):
                server.log["items"][2]["content"] = "line"
                hold.set()
                break
        assert (await turn.wait()).reason == "done"
        subscription.close()
        seen = session.events()
        await session.aclose()
    results = [event.result.for_model for event in seen if isinstance(event, ToolFinished)]
    assert results == ["line"]
    thoughts = [
        part.text
        for e in seen
        if isinstance(e, MessageDone)
        for part in e.message.parts
        if isinstance(part, ThoughtPart)
    ]
    assert thoughts == ["I plan"]


@pytest.mark.req("AZ-1")
async def test_what_the_server_did_is_shown_before_its_answer(tmp_path):
    """Also if the answer arrives before the log is polled again."""
    server = ScriptedZeroServer([zero_reply("one")])

    async def work():
        server.log = {"guid": "g", "items": [{"no": 1, "type": "code_exe", "heading": "run", "content": "line"}]}

    server.answers.append(ZeroAnswer([work, b'{"response": "two"}']))
    server.log = {"guid": "g", "items": []}
    async with server:
        session = await open_session(server, tmp_path, poll_seconds=600)
        await run_turn(session, "first")
        events, _ = await run_turn(session, "second")
        await session.aclose()
    shown = [event for event in events if isinstance(event, ToolFinished | MessageDone)]
    assert [type(event) for event in shown[-2:]] == [ToolFinished, MessageDone]


@pytest.mark.req("AZ-1")
async def test_log_is_shown_in_the_first_turn_when_the_conversation_is_known(tmp_path):
    answers = [zero_json({"context_id": "c", "response": json.dumps(REQUEST)})]
    server = ScriptedZeroServer(answers)

    async def work():
        trace = "out of memory\n\nTraceback (most recent call last):\n  File x"
        server.log = {"guid": "g", "items": [{"no": 1, "type": "error", "heading": "Error", "content": trace}]}

    server.answers.append(ZeroAnswer([work, b'{"response": "two"}']))
    server.log = {"guid": "g", "items": []}
    async with server:
        session = await open_session(server, tmp_path, [FakeTool("probe")])
        events, ended = await run_turn(session, "first")
        await session.aclose()
    assert ended.reason == "done"
    assert [event.text for event in events if isinstance(event, Notice)] == ["Agent Zero: Error: out of memory"]


@pytest.mark.req("CL-9")
async def test_cancelled_turn_tells_the_server_to_stop_and_says_so(tmp_path):
    forever = asyncio.Event()
    answers = [zero_reply("one"), ZeroAnswer([forever.wait, b"{}"]), zero_reply("stopped")]
    async with ScriptedZeroServer(answers) as server:
        session = await open_session(server, tmp_path)
        await run_turn(session, "first")
        turn = session.start(make_prompt("second"))
        await server.wait_for_messages(2)
        turn.cancel()
        assert (await turn.wait()).reason == "cancelled"
        notices = [event.text for event in session.events() if isinstance(event, Notice)]
        await session.aclose()
    assert "cancelled" in server.messages[2]["message"]
    assert any("told Agent Zero to stop" in text for text in notices)


@pytest.mark.req("AZ-2")
async def test_lost_conversation_is_replaced(tmp_path):
    answers = [zero_reply("one", "a"), zero_json({"error": "Context not found"}, 404), zero_reply("two", "b")]
    async with ScriptedZeroServer(answers) as server:
        session = await open_session(server, tmp_path)
        await run_turn(session, "first")
        events, ended = await run_turn(session, "second")
        assert (ended.reason, texts(events)) == ("done", ["two"])
        assert [e.epoch for e in session.events() if isinstance(e, RemoteCursor)] == ["a", "", "b"]
        await session.aclose()
    assert [message.get("context_id") for message in server.messages] == [None, "a", None]


@pytest.mark.req("AZ-2", "AZ-4")
async def test_conversation_that_replaces_a_lost_one_gets_the_description(tmp_path):
    class Described:
        async def build(self, *, requests_tools=True):
            return WorkspaceContext("[described]", "same")

    lost = zero_json({"error": "Context not found"}, 404)
    async with ScriptedZeroServer(
        [zero_reply("one", "a"), zero_reply("two", "a"), lost, zero_reply("3", "b")]
    ) as server:
        backend = make_backend(server.api_url)
        backend._context_sender = ContextSender(Described(), "on_change")
        session = await open_test_session(backend, (), LocalWorkspace(str(tmp_path)))
        for text in ("one", "two", "three"):
            await run_turn(session, text)
        await session.aclose()
    assert ["[described]" in message["message"] for message in server.messages] == [True, False, False, True]


@pytest.mark.req("AZ-2", "AZ-4")
@pytest.mark.parametrize("is_reopened", [False, True])
async def test_conversation_that_was_emptied_gets_the_description_again(is_reopened, tmp_path):
    class Described:
        async def build(self, *, requests_tools=True):
            return WorkspaceContext("[described]", "same")

    async def open_described(journal=None):
        backend = make_backend(server.api_url)
        backend._context_sender = ContextSender(Described(), "on_change")
        return await open_test_session(backend, (), LocalWorkspace(str(tmp_path)), journal=journal)

    async with ScriptedZeroServer([zero_reply(text, "a") for text in ("1", "2", "3", "4")]) as server:
        session = await open_described()
        for text in ("one", "two", "/reset"):
            await run_turn(session, text)
        if is_reopened:
            journal = session._journal
            await session.aclose()
            session = await open_described(journal)
        for text in ("three", "four"):
            await run_turn(session, text)
        await session.aclose()
    assert ["[described]" in message["message"] for message in server.messages] == [True, False, True, False]
    assert [message.get("context_id") for message in server.messages] == [None, "a", "a", "a"]


@pytest.mark.invariant("S3")
@pytest.mark.parametrize("way", ["lost", "/reset", "/terminate"])
async def test_instructions_are_sent_again_if_the_server_has_lost_them(way, tmp_path):
    class Instructed(FixedAccess):
        def instructions(self):
            return "[instructions]"

    answers = [zero_reply("1", "a"), zero_reply("2", "a")]
    answers += [zero_json({"error": "Context not found"}, 404)] if way == "lost" else []
    async with ScriptedZeroServer([*answers, zero_reply("3", "b"), zero_reply("4", "b")]) as server:
        backend, workspace = make_backend(server.api_url), LocalWorkspace(str(tmp_path))
        session = await open_test_session(backend, (), workspace, policy=Instructed(ALLOW_ALL))
        for text in ("one", "two", *([] if way == "lost" else [way]), "three", "four"):
            await run_turn(session, text)
        await session.aclose()
    sent = [message["message"].count("[instructions]") for message in server.messages]
    assert sent == ([1, 0, 0, 1, 0] if way == "lost" else [1, 0, 1, 0])


@pytest.mark.req("AZ-3")
async def test_tool_results_are_not_sent_to_another_conversation(tmp_path):
    lost = zero_json({"error": "Context not found"}, 404)
    async with ScriptedZeroServer([zero_reply(json.dumps(REQUEST), "a"), lost]) as server:
        session = await open_session(server, tmp_path, [FakeTool("probe")])
        _, ended = await run_turn(session, "go")
        await session.aclose()
    assert ended.reason == "failed" and "no longer exists" in ended.fault.message
    assert [message.get("context_id") for message in server.messages] == [None, "a"]


@pytest.mark.req("AZ-1")
async def test_mentioned_files_and_images_are_attachments(tmp_path):
    from ostler.core.prompt import EmbeddedResource, ImageContent, Prompt, TextContent

    blocks = (
        TextContent("look at @a/x.txt and @b/x.txt"),
        EmbeddedResource("a/x.txt", "alpha"),
        EmbeddedResource("b/x.txt", "beta"),
        ImageContent("image/png", "aW1n", ""),
    )
    async with ScriptedZeroServer([zero_reply("ok")]) as server:
        session = await open_session(server, tmp_path)
        await session.start(Prompt("p1", blocks)).wait()
        await session.aclose()
    names = [attachment["filename"] for attachment in server.messages[0]["attachments"]]
    assert names == ["x.txt", "x-2.txt", "image.png"]
    assert server.messages[0]["attachments"][0]["base64"] == "YWxwaGE="


@pytest.mark.req("AZ-1")
@pytest.mark.parametrize(
    ("command", "route", "kept"), [("/reset", "api_reset_chat", "c-1"), ("/terminate", "api_terminate_chat", None)]
)
async def test_reset_and_terminate_call_the_server(command, route, kept, tmp_path):
    async with ScriptedZeroServer([zero_reply("1", "c-1"), zero_reply("2", "c-1")]) as server:
        session = await open_session(server, tmp_path)
        await run_turn(session, "one")
        _, ended = await run_turn(session, command)
        await run_turn(session, "two")
        await session.aclose()
    assert ended.reason == "done"
    assert [request.json for request in server.requests if request.path.endswith(route)] == [{"context_id": "c-1"}]
    assert server.messages[1].get("context_id") == kept


@pytest.mark.req("AZ-6")
@pytest.mark.parametrize(
    ("limit", "words", "reason"),
    [({"timeout": 0.3}, "sent nothing for 0.3 s", "failed"), ({"max_wait": 0.3}, "within 0.3 s", "limit")],
)
async def test_silence_and_long_turns_reach_their_limits(limit, words, reason, tmp_path):
    never = asyncio.Event()
    async with ScriptedZeroServer([ZeroAnswer([never.wait, b"{}"])]) as server:
        session = await open_session(server, tmp_path, keepalive=0, **limit)
        events, ended = await run_turn(session, "hi")
        await session.aclose()
    assert ended.reason == reason
    assert words in texts(events)[-1]


@pytest.mark.req("AZ-2")
async def test_prompt_during_a_turn_is_sent_into_it(tmp_path):
    async with ScriptedZeroServer([zero_reply("1", "c-1")]) as server:
        session = await open_session(server, tmp_path)
        await run_turn(session, "one")
        both = ZeroAnswer(
            [lambda: server.wait_for_messages(3), json.dumps({"context_id": "c-1", "response": "both"}).encode()]
        )
        server.answers += [both, zero_reply("both", "c-1")]
        turn = session.start(make_prompt("two"))
        await server.wait_for_messages(2)
        assert await session.apply(Steer(make_prompt("and three")))
        await turn.wait()
        await session.aclose()
    assert [message["message"] for message in server.messages] == ["one", "two", "and three"]
