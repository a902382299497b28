"""Calls in XNL blocks start while the reply goes on: over real HTTP, with a server that waits for them to have run."""

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
PATIENCE = 60
END = "!unquote_end"


def block(*calls):
    """A block with calls of these tools, `id=tool`."""
    made = (call.split("=") for call in calls)
    inside = "".join(f'<tool_call id="{call_id}" lang="javascript" #>{tool}({{}})</#>\n' for call_id, tool in made)
    return f"!unquote_start\n{inside}{END}"


def said(words, until=None, *, behind=END):
    """A reply in single characters; after the first mark it waits."""
    reply = text(words, chunks=len(words))
    return reply.hold_after(1 + words.index(behind) + len(behind), until) if until else reply


async def no_nap(seconds):
    """Nobody waits in a test."""


def xnl(server, **values):
    patience = StallTimeouts(notice=PATIENCE, first=PATIENCE, silent=PATIENCE)
    network = NetworkConfig(environ={}, timeouts=patience, retry_policy=RetryPolicy(attempts=3, sleep=no_nap))
    made = make_client(model="m", api_kind="openai", api_key="", base_url=server.base_url, network=network, **values)
    return apply_dialect(made, "xnl")


class Work:
    """A tool's work that tells when it began, goes on when it is let, and tells that it was done."""

    def __init__(self, *, waits=False):
        self.begun, self.go, self.done = asyncio.Event(), asyncio.Event(), asyncio.Event()
        if not waits:
            self.go.set()

    async def __call__(self, params, context):
        self.begun.set()
        async with asyncio.timeout(PATIENCE):
            await self.go.wait()
        self.done.set()
        return "worked"

    def tool(self, name="srv.work", **how):
        return FakeTool(name, self, **how)


async def patiently(waiting):
    async with asyncio.timeout(PATIENCE):
        return await waiting


def messages(server, number):
    return server.requests[number].json["messages"]


def places(events, *wanted):
    """Where the first event of each kind and text stands."""
    return [next(at for at, event in enumerate(events) if test(event)) for test in wanted]


def is_finished(call_id):
    return lambda event: isinstance(event, ToolFinished) and event.result.call_id == call_id


def is_text(words):
    return lambda event: isinstance(event, TextDelta) and words in event.text


async def test_a_call_has_run_before_the_reply_is_over(harness):
    work = Work()
    words = f"I look.\n{block('a=srv.work')}\nThen~ I tell."
    async with ScriptedModelServer(said(words, work.done.wait), text("All done.")) as server:
        await harness.open(xnl(server), [work.tool()])
        ended = await patiently(harness.turn("go"))
    assert (ended.reason, len(harness.past(ToolFinished))) == ("done", 1)
    ran, more = places(harness.events, is_finished("a"), is_text("~"))
    assert ran < more
    first, rest, last = [event.message for event in harness.past(MessageDone)]
    assert [first.text, rest.text, last.text] == ["I look.\n", "Then~ I tell.", "All done."]
    assert [first.continues, rest.continues, last.continues] == [False, True, False]
    assert "unquote" not in "".join(event.text for event in harness.events if isinstance(event, TextDelta))
    *_, reply, results = messages(server, 1)
    assert (reply["role"], results["role"]) == ("assistant", "user")
    assert reply["content"].startswith("I look.\n!unquote_start")
    assert reply["content"].endswith(f"{END}\nThen~ I tell.")
    assert '<tool_resp id="a" #a>worked</#a>' in results["content"]


async def test_nothing_follows_the_last_block_and_nothing_is_kept_of_it(harness):
    work = Work()
    async with ScriptedModelServer(said(f"{block('a=srv.work')}\n\n", work.done.wait), text("Done.")) as server:
        await harness.open(xnl(server), [work.tool()])
        assert (await patiently(harness.turn("go"))).reason == "done"
    assert [event.message.text for event in harness.past(MessageDone)] == ["", "Done."]


async def test_what_is_sent_is_what_is_sent_where_the_calls_wait_for_the_end(harness, tmp_path):
    """And each request begins with the one before."""
    from engine_play import Play

    work = Work()
    tools = [work.tool(), FakeTool("srv.look", effects=False)]
    words = f"One {block('a=srv.work')} two {block('b=srv.look', 'c=srv.look')} three"
    again = f"{block('d=srv.look')}"
    sent = []
    for play, until in ((harness, work.done.wait), (Play(str(tmp_path)), None)):
        async with ScriptedModelServer(said(words, until), text(again), text("Done.")) as server:
            client = xnl(server)
            if until is None:
                client._has_untagged_reasoning = True  # so that no call begins before the end
            await play.open(client, tools)
            await patiently(play.turn("go"))
            sent.append([messages(server, number) for number in range(3)])
        assert len(play.past(MessageDone)) == (5 if until else 3)
    await play.session.aclose()
    assert sent[0] == sent[1]
    for before, after in pairwise(sent[0]):
        assert after[: len(before)] == before
        assert [message["role"] for message in after[-2:]] == ["assistant", "user"]


async def test_calls_of_several_blocks_keep_their_order(harness):
    first, second = Work(waits=True), Work()
    words = f"{block('a=srv.first')} and {block('b=srv.second')} end~"
    async with ScriptedModelServer(said(words, first.begun.wait), text("Done.")) as server:
        await harness.open(xnl(server), [first.tool("srv.first"), second.tool("srv.second")])
        turn = asyncio.create_task(harness.turn("go"))
        await patiently(first.begun.wait())
        async with asyncio.timeout(PATIENCE):
            while not any(event.call.id == "b" for event in harness.past(ToolCalled)):
                await asyncio.sleep(0.01)
        assert not second.begun.is_set()
        first.go.set()
        assert (await patiently(turn)).reason == "done"
    assert [event.result.call_id for event in harness.past(ToolFinished)] == ["a", "b"]


async def test_looks_of_several_blocks_run_side_by_side(harness):
    first, second = Work(waits=True), Work(waits=True)
    words = f"{block('a=srv.first')} and {block('b=srv.second')}"
    async with ScriptedModelServer(said(words, first.begun.wait), text("Done.")) as server:
        await harness.open(
            xnl(server), [first.tool("srv.first", effects=False), second.tool("srv.second", effects=False)]
        )
        turn = asyncio.create_task(harness.turn("go"))
        await patiently(second.begun.wait())
        assert not first.done.is_set()
        second.go.set()
        await patiently(second.done.wait())
        first.go.set()
        assert (await patiently(turn)).reason == "done"
    results = messages(server, 1)[-1]["content"]
    assert results.index("#a>") < results.index("#b>")


async def test_a_bad_block_costs_an_error_and_the_rest_goes_on(harness):
    work = Work()
    words = f"!unquote_start <tool_call #>nonsense!</#> {END} {block('a=srv.work')} end"
    async with ScriptedModelServer(said(words, work.done.wait, behind="work({})</#>\n" + END), text("Done.")) as server:
        await harness.open(xnl(server), [work.tool()])
        assert (await patiently(harness.turn("go"))).reason == "done"
    assert [event.result.status for event in harness.past(ToolFinished)] == ["failed", "ok"]
    assert "MISSING_ID" in messages(server, 1)[-1]["content"]


@pytest.mark.req("MD-5")
async def test_a_stream_that_breaks_after_a_call_goes_on_from_its_result(harness):
    work = Work(waits=True)
    words = f"One {block('a=srv.work')} tw"
    reply = said(words + "o" * 50, work.begun.wait)
    size = sum(map(len, reply.body_parts("openai", {"stream": True}, 1)[: 1 + len(words)]))
    async with ScriptedModelServer(reply.cut_after(size), text("Done.")) as server:
        spare = FallbackProfile("spare", lambda: pytest.fail("nobody may begin anew"))
        await harness.open(FallbackModel(xnl(server), [spare]), [tool := work.tool()])
        turn = asyncio.create_task(harness.turn("go"))
        await patiently(work.begun.wait())
        async with asyncio.timeout(PATIENCE):
            while not harness.past(Notice):
                await asyncio.sleep(0.01)
        assert len(server.requests) == 1  # the next one tells the result
        work.go.set()
        assert (await patiently(turn)).reason == "done"
    assert len(tool.runs) == 1
    assert [event.message.truncated for event in harness.past(MessageDone)] == [False, True, False]
    (told,) = harness.past(Notice)
    assert "the reply is incomplete; going on from the results of its calls" in told.text
    *_, reply, results = messages(server, 1)
    assert reply["content"].endswith("tw")
    assert "worked" in results["content"]


@pytest.mark.req("MD-5")
async def test_a_failure_that_nothing_mends_ends_the_turn_with_the_work_done(harness):
    work = Work()
    reply = said(f"One {block('a=srv.work')} two", work.begun.wait)
    pieces = reply.body_parts("openai", {"stream": True}, 1)
    broken = sse_event(
        {"error": {"message": "no such key", "code": "invalid_api_key", "type": "invalid_request_error"}}
    )
    async with ScriptedModelServer(replace(reply, body=(*pieces[:-4], broken)), text("Done.")) as server:
        await harness.open(xnl(server), [work.tool()])
        ended = await patiently(harness.turn("go"))
        assert (ended.reason, [event.result.status for event in harness.past(ToolFinished)]) == ("failed", ["ok"])
        assert (await patiently(harness.turn("go on"))).reason == "done"
    assert [message["role"] for message in messages(server, 1)[-3:]] == ["assistant", "user", "user"]


@pytest.mark.req("EN-5")
async def test_a_turn_that_is_cancelled_stops_what_runs_and_all_have_their_results(harness):
    work = Work(waits=True)
    never = asyncio.Event()
    words = f"One {block('a=srv.work', 'b=srv.work')} two~ three"
    async with ScriptedModelServer(said(words, never.wait, behind="two~"), text("Well.")) as server:
        await harness.open(xnl(server), [tool := work.tool()])
        turn = harness.session.start(make_prompt("go"))
        await patiently(work.begun.wait())
        turn.cancel()
        assert (await patiently(turn.wait())).reason == "cancelled"
        assert (len(tool.runs), work.done.is_set()) == (1, False)
        assert [event.result.status for event in harness.past(ToolFinished)] == ["cancelled", "cancelled"]
        assert (await patiently(harness.turn("and now?"))).reason == "done"
        results, now = messages(server, 1)[-2:]
        assert results["content"].count("<tool_resp") == 2
        assert now["content"] == "and now?"
        never.set()


@pytest.mark.req("EN-5")
async def test_the_answer_goes_on_while_a_person_is_asked(harness):
    answered = asyncio.Event()
    words = f"One {block('a=srv.work')} two~ three; four"
    async with ScriptedModelServer(said(words, answered.wait, behind="three;"), text("Done.")) as server:
        await harness.open(xnl(server), [FakeTool("srv.work")], policy=ASK_ALL)
        reading = harness.session.subscribe()
        turn = harness.session.start(make_prompt("go"))
        heard, state, ask = "", "", ""
        async with asyncio.timeout(PATIENCE):
            async for envelope in reading:
                match envelope.event:
                    case TextDelta(_, more):
                        heard += more
                    case StateChanged(now):
                        state = now
                    case PermissionAsked(ask_id):
                        ask = ask_id
                if ask and "three;" in heard:
                    break
        assert state == "awaiting_permission"
        assert harness.session.answer(ask, Decision("allow"))
        answered.set()
        assert (await patiently(turn.wait())).reason == "done"
        reading.close()
    assert [event.result.status for event in harness.past(ToolFinished)] == ["ok"]
    (started,) = harness.past(ToolStarted)
    assert started.call_id == "a"


@pytest.mark.req("EN-6")
async def test_pieces_are_one_step_and_one_message(harness):
    words = f"One {block('a=srv.work')} two {block('b=srv.work')} three"
    async with ScriptedModelServer(said(words), text("Done.")) as server:
        await harness.open(xnl(server), [FakeTool("srv.work")], limits=TurnLimits(steps=2))
        assert (await patiently(harness.turn("go"))).reason == "done"
    assert len(harness.past(MessageDone)) == 4
    meta = SessionMeta("s")
    for envelope in harness.session.records():
        meta.apply(envelope)
    assert meta.messages == 3


@pytest.mark.req("SE-3")
async def test_a_session_may_go_back_to_any_record_of_such_a_reply(harness, tmp_path):
    words = f"One {block('a=srv.work')} two {block('b=srv.work')} three"
    async with ScriptedModelServer(said(words), text("Done.")) as server:
        await harness.open(xnl(server), [FakeTool("srv.work")])
        await patiently(harness.turn("go"))
        last = harness.session.records()[-1].seq
        for seq in range(2, last):
            await harness.session.apply(Revert(seq))
            server.add_replies(text("Well."))
            await patiently(harness.turn("and now?"))
            roles = [message["role"] for message in messages(server, -1)]
            assert roles[-1] == "user"
            assert "assistant" not in [role for role, after in pairwise(roles) if role == after]
