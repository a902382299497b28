"""Calls in XNL blocks start while the reply is streaming: over real HTTP, with a server that waits for them to run."""

import asyncio
from dataclasses import replace
from itertools import pairwise

import pytest

from ostler.backends.engine.plugins.limits import TurnLimits
from ostler.core.events import (
    MessageDone,
    Notice,
    PermissionAsked,
    StateChanged,
    TextDelta,
    ToolCalled,
    ToolFinished,
    ToolStarted,
)
from ostler.core.permission import Decision
from ostler.core.sessions import Revert
from ostler.journal.session_meta import SessionMeta
from ostler.models.client_factory import NetworkConfig, make_client
from ostler.models.dialects.dialect import apply_dialect
from ostler.models.fallback import FallbackModel, FallbackProfile
from ostler.models.retry import RetryPolicy
from ostler.models.stall_detector import StallTimeouts
from ostler.testing.fake_tool import FakeTool
from ostler.testing.model_server import ScriptedModelServer, sse_event, text
from ostler.testing.session_fixture import ASK_ALL, make_prompt

pytestmark = pytest.mark.req("MD-6")
TIMEOUT = 60
END = "!unquote_end"


def block(*calls):
    """Return a block with calls, given as `id=tool`."""
    pairs = (call.split("=") for call in calls)
    body = "".join(f'<tool_call id="{call_id}" lang="javascript" #>{tool}({{}})</#>\n' for call_id, tool in pairs)
    return f"!unquote_start\n{body}{END}"


def stream_reply(content, until=None, *, behind=END):
    """Return a reply in single characters that pauses after the first `behind` until `until` returns."""
    reply = text(content, chunks=len(content))
    return reply.hold_after(1 + content.index(behind) + len(behind), until) if until else reply


async def no_sleep(seconds):
    """Do not wait."""


def xnl(server, **values):
    timeouts = StallTimeouts(notice=TIMEOUT, first=TIMEOUT, silent=TIMEOUT)
    network = NetworkConfig(environ={}, timeouts=timeouts, retry_policy=RetryPolicy(attempts=3, sleep=no_sleep))
    client = make_client(model="m", api_kind="openai", api_key="", base_url=server.base_url, network=network, **values)
    return apply_dialect(client, "xnl")


class Work:
    """A tool's work with events for its start, permission to continue, and its end."""

    def __init__(self, *, waits=False):
        self.started, self.go, self.done = asyncio.Event(), asyncio.Event(), asyncio.Event()
        if not waits:
            self.go.set()

    async def __call__(self, params, context):
        self.started.set()
        async with asyncio.timeout(TIMEOUT):
            await self.go.wait()
        self.done.set()
        return "worked"

    def tool(self, name="srv.work", **options):
        return FakeTool(name, self, **options)


async def with_timeout(awaitable):
    async with asyncio.timeout(TIMEOUT):
        return await awaitable


def messages(server, number):
    return server.requests[number].json["messages"]


def first_indexes(events, *predicates):
    """Return the index of the first event that each predicate accepts."""
    return [next(index for index, event in enumerate(events) if predicate(event)) for predicate in predicates]


def is_finished(call_id):
    return lambda event: isinstance(event, ToolFinished) and event.result.call_id == call_id


def is_text(part):
    return lambda event: isinstance(event, TextDelta) and part in event.text


async def test_call_runs_before_the_reply_ends(harness):
    work = Work()
    content = f"I look.\n{block('a=srv.work')}\nThen~ I tell."
    async with ScriptedModelServer(stream_reply(content, work.done.wait), text("All done.")) as server:
        await harness.open(xnl(server), [work.tool()])
        ended = await with_timeout(harness.turn("go"))
    assert (ended.reason, len(harness.events_of(ToolFinished))) == ("done", 1)
    finished, later_text = first_indexes(harness.events, is_finished("a"), is_text("~"))
    assert finished < later_text
    first, rest, last = [event.message for event in harness.events_of(MessageDone)]
    assert [first.text, rest.text, last.text] == ["I look.\n", "Then~ I tell.", "All done."]
    assert [first.continues, rest.continues, last.continues] == [False, True, False]
    assert "unquote" not in "".join(event.text for event in harness.events if isinstance(event, TextDelta))
    *_, reply, results = messages(server, 1)
    assert (reply["role"], results["role"]) == ("assistant", "user")
    assert reply["content"].startswith("I look.\n!unquote_start")
    assert reply["content"].endswith(f"{END}\nThen~ I tell.")
    assert '<tool_resp id="a" #a>worked</#a>' in results["content"]


async def test_whitespace_after_the_last_block_is_dropped(harness):
    work = Work()
    async with ScriptedModelServer(stream_reply(f"{block('a=srv.work')}\n\n", work.done.wait), text("Done.")) as server:
        await harness.open(xnl(server), [work.tool()])
        assert (await with_timeout(harness.turn("go"))).reason == "done"
    assert [event.message.text for event in harness.events_of(MessageDone)] == ["", "Done."]


@pytest.mark.invariant("M4")
async def test_requests_do_not_depend_on_early_calls(harness, tmp_path):
    """Each request also begins with the previous one."""
    from engine_harness import EngineHarness

    work = Work()
    tools = [work.tool(), FakeTool("srv.look", effects=False)]
    content = f"One {block('a=srv.work')} two {block('b=srv.look', 'c=srv.look')} three"
    second_reply = f"{block('d=srv.look')}"
    sent = []
    for session_harness, until in ((harness, work.done.wait), (EngineHarness(str(tmp_path)), None)):
        async with ScriptedModelServer(stream_reply(content, until), text(second_reply), text("Done.")) as server:
            client = xnl(server)
            if until is None:
                client._has_untagged_reasoning = True  # no call starts before the reply ends
            await session_harness.open(client, tools)
            await with_timeout(session_harness.turn("go"))
            sent.append([messages(server, number) for number in range(3)])
        assert len(session_harness.events_of(MessageDone)) == (5 if until else 3)
    await session_harness.session.aclose()
    assert sent[0] == sent[1]
    for before, after in pairwise(sent[0]):
        assert after[: len(before)] == before
        assert [message["role"] for message in after[-2:]] == ["assistant", "user"]


async def test_calls_of_several_blocks_run_in_order(harness):
    first, second = Work(waits=True), Work()
    content = f"{block('a=srv.first')} and {block('b=srv.second')} end~"
    async with ScriptedModelServer(stream_reply(content, first.started.wait), text("Done.")) as server:
        await harness.open(xnl(server), [first.tool("srv.first"), second.tool("srv.second")])
        turn = asyncio.create_task(harness.turn("go"))
        await with_timeout(first.started.wait())
        async with asyncio.timeout(TIMEOUT):
            while not any(event.call.id == "b" for event in harness.events_of(ToolCalled)):
                await asyncio.sleep(0.01)
        assert not second.started.is_set()
        first.go.set()
        assert (await with_timeout(turn)).reason == "done"
    assert [event.result.call_id for event in harness.events_of(ToolFinished)] == ["a", "b"]


async def test_read_only_calls_of_several_blocks_run_in_parallel(harness):
    first, second = Work(waits=True), Work(waits=True)
    content = f"{block('a=srv.first')} and {block('b=srv.second')}"
    async with ScriptedModelServer(stream_reply(content, first.started.wait), text("Done.")) as server:
        await harness.open(
            xnl(server), [first.tool("srv.first", effects=False), second.tool("srv.second", effects=False)]
        )
        turn = asyncio.create_task(harness.turn("go"))
        await with_timeout(second.started.wait())
        assert not first.done.is_set()
        second.go.set()
        await with_timeout(second.done.wait())
        first.go.set()
        assert (await with_timeout(turn)).reason == "done"
    results = messages(server, 1)[-1]["content"]
    assert results.index("#a>") < results.index("#b>")


async def test_invalid_block_is_an_error_and_others_run(harness):
    work = Work()
    content = f"!unquote_start <tool_call #>nonsense!</#> {END} {block('a=srv.work')} end"
    async with ScriptedModelServer(
        stream_reply(content, work.done.wait, behind="work({})</#>\n" + END), text("Done.")
    ) as server:
        await harness.open(xnl(server), [work.tool()])
        assert (await with_timeout(harness.turn("go"))).reason == "done"
    assert [event.result.status for event in harness.events_of(ToolFinished)] == ["failed", "ok"]
    assert "MISSING_ID" in messages(server, 1)[-1]["content"]


@pytest.mark.req("MD-5")
@pytest.mark.invariant("M4")
async def test_broken_stream_continues_with_the_results(harness):
    work = Work(waits=True)
    content = f"One {block('a=srv.work')} tw"
    reply = stream_reply(content + "o" * 50, work.started.wait)
    size = sum(map(len, reply.body_parts("openai", {"stream": True}, 1)[: 1 + len(content)]))
    async with ScriptedModelServer(reply.cut_after(size), text("Done.")) as server:
        fallback = FallbackProfile("spare", lambda: pytest.fail("the reply must not be restarted"))
        await harness.open(FallbackModel(xnl(server), [fallback]), [tool := work.tool()])
        turn = asyncio.create_task(harness.turn("go"))
        await with_timeout(work.started.wait())
        async with asyncio.timeout(TIMEOUT):
            while not harness.events_of(Notice):
                await asyncio.sleep(0.01)
        assert len(server.requests) == 1  # the next one contains the result
        work.go.set()
        assert (await with_timeout(turn)).reason == "done"
    assert len(tool.runs) == 1
    assert [event.message.truncated for event in harness.events_of(MessageDone)] == [False, True, False]
    (notice,) = harness.events_of(Notice)
    assert notice.text.endswith("; continuing with the results of its calls")
    *_, reply, results = messages(server, 1)
    assert reply["content"].endswith("tw")
    assert "worked" in results["content"]


@pytest.mark.req("MD-5")
async def test_permanent_failure_ends_the_turn_after_started_calls(harness):
    work = Work()
    reply = stream_reply(f"One {block('a=srv.work')} two", work.started.wait)
    body_parts = reply.body_parts("openai", {"stream": True}, 1)
    error_event = sse_event(
        {"error": {"message": "no such key", "code": "invalid_api_key", "type": "invalid_request_error"}}
    )
    async with ScriptedModelServer(replace(reply, body=(*body_parts[:-4], error_event)), text("Done.")) as server:
        await harness.open(xnl(server), [work.tool()])
        ended = await with_timeout(harness.turn("go"))
        assert (ended.reason, [event.result.status for event in harness.events_of(ToolFinished)]) == ("failed", ["ok"])
        assert (await with_timeout(harness.turn("continue"))).reason == "done"
    assert [message["role"] for message in messages(server, 1)[-3:]] == ["assistant", "user", "user"]


@pytest.mark.req("EN-5")
async def test_cancelled_turn_stops_calls_and_records_results(harness):
    work = Work(waits=True)
    never = asyncio.Event()
    content = f"One {block('a=srv.work', 'b=srv.work')} two~ three"
    async with ScriptedModelServer(stream_reply(content, never.wait, behind="two~"), text("Well.")) as server:
        await harness.open(xnl(server), [tool := work.tool()])
        turn = harness.session.start(make_prompt("go"))
        await with_timeout(work.started.wait())
        turn.cancel()
        assert (await with_timeout(turn.wait())).reason == "cancelled"
        assert (len(tool.runs), work.done.is_set()) == (1, False)
        assert [event.result.status for event in harness.events_of(ToolFinished)] == ["cancelled", "cancelled"]
        assert (await with_timeout(harness.turn("and now?"))).reason == "done"
        results, now = messages(server, 1)[-2:]
        assert results["content"].count("<tool_resp") == 2
        assert now["content"] == "and now?"
        never.set()


@pytest.mark.req("EN-5")
async def test_reply_continues_during_an_approval_request(harness):
    answered = asyncio.Event()
    content = f"One {block('a=srv.work')} two~ three; four"
    async with ScriptedModelServer(stream_reply(content, answered.wait, behind="three;"), text("Done.")) as server:
        await harness.open(xnl(server), [FakeTool("srv.work")], policy=ASK_ALL)
        subscription = harness.session.subscribe()
        turn = harness.session.start(make_prompt("go"))
        received, state, ask = "", "", ""
        async with asyncio.timeout(TIMEOUT):
            async for envelope in subscription:
                match envelope.event:
                    case TextDelta(_, part):
                        received += part
                    case StateChanged(now):
                        state = now
                    case PermissionAsked(ask_id):
                        ask = ask_id
                if ask and "three;" in received:
                    break
        assert state == "awaiting_permission"
        assert harness.session.answer(ask, Decision("allow"))
        answered.set()
        assert (await with_timeout(turn.wait())).reason == "done"
        subscription.close()
    assert [event.result.status for event in harness.events_of(ToolFinished)] == ["ok"]
    (started,) = harness.events_of(ToolStarted)
    assert started.call_id == "a"


@pytest.mark.req("EN-6")
async def test_pieces_count_as_one_step_and_message(harness):
    content = f"One {block('a=srv.work')} two {block('b=srv.work')} three"
    async with ScriptedModelServer(stream_reply(content), text("Done.")) as server:
        await harness.open(xnl(server), [FakeTool("srv.work")], limits=TurnLimits(steps=2))
        assert (await with_timeout(harness.turn("go"))).reason == "done"
    assert len(harness.events_of(MessageDone)) == 4
    meta = SessionMeta("s")
    for envelope in harness.session.records():
        meta.apply(envelope)
    assert meta.messages == 3


@pytest.mark.req("SE-3")
async def test_revert_to_any_record_of_a_reply_in_pieces(harness, tmp_path):
    content = f"One {block('a=srv.work')} two {block('b=srv.work')} three"
    async with ScriptedModelServer(stream_reply(content), text("Done.")) as server:
        await harness.open(xnl(server), [FakeTool("srv.work")])
        await with_timeout(harness.turn("go"))
        last = harness.session.records()[-1].seq
        for seq in range(2, last):
            await harness.session.apply(Revert(seq))
            server.add_replies(text("Well."))
            await with_timeout(harness.turn("and now?"))
            roles = [message["role"] for message in messages(server, -1)]
            assert roles[-1] == "user"
            assert "assistant" not in [role for role, after in pairwise(roles) if role == after]
