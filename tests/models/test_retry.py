"""Asking again: where it helps, never where it harms, and always visible."""

import asyncio
import email.utils
import itertools
import time

import pytest
from model_talk import ask, collect, only, thoughts, words

from ostler.core.errors import BackendError
from ostler.models.model_errors import parse_retry_after
from ostler.models.model_types import CallChunk, NoData, ReplyFinished, RetryScheduled, TextChunk
from ostler.models.retry import RetryPolicy
from ostler.models.stall_detector import StallDetector, StallTimeouts
from ostler.testing.model_server import (
    ScriptedModelServer,
    calls,
    drop,
    keep_alive_only,
    raw,
    sse_event,
    sse_reply,
    stall,
    status,
    text,
)

HASTY = StallTimeouts(notice=0.02, first=0.06, silent=0.06, tick=0.01)


def delta(**fields):
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": None}]}


@pytest.mark.req("MD-5")
@pytest.mark.parametrize(
    "fault",
    [
        status(408),
        status(409),
        status(429, {"error": {"message": "Rate limit reached, 3 requests per minute"}}),
        status(500),
        status(502, "<html>"),
        status(503),
        status(504),
        status(529),
        drop(),
        drop(reset=True),
        text("abc", chunks=3).cut_after(0),
        raw(b""),
        raw(b": only a comment\n\n"),
        sse_reply(delta(content=""), done=False),
        sse_reply(done=True),
        sse_reply({"error": {"message": "upstream failed", "code": 502}}),
        calls([("read", {"path": "a"})]).cut_after(420),
        calls([("read", {"path": "a"})]).cut_after(420, reset=True),
    ],
)
async def test_a_fault_before_any_words_is_asked_again(client, naps, fault):
    async with ScriptedModelServer(fault, text("hello")) as server:
        chunks = await collect(client(server))
    assert words(chunks) == "hello"
    assert chunks[-1] == ReplyFinished("stop")
    (waiting,) = only(chunks, RetryScheduled)
    assert (waiting.attempt, waiting.seconds) == (2, 0.5)
    assert f"127.0.0.1:{server.port}" in waiting.reason
    assert naps.taken == [0.5]


@pytest.mark.req("MD-5")
@pytest.mark.parametrize("code", [400, 401, 402, 403, 404, 422])
async def test_what_asking_again_cannot_mend_is_not_asked_again(client, naps, code):
    async with ScriptedModelServer(status(code)) as server:
        with pytest.raises(BackendError):
            await collect(client(server))
    assert naps.taken == []


@pytest.mark.req("MD-5")
async def test_a_used_up_quota_is_not_asked_again(client, naps):
    spent = status(429, {"error": {"code": "insufficient_quota", "message": "check your billing"}})
    async with ScriptedModelServer(spent) as server:
        with pytest.raises(BackendError) as caught:
            await collect(client(server))
    assert caught.value.fault.code == "quota"
    assert naps.taken == []


@pytest.mark.req("MD-5")
async def test_pauses_grow_and_attempts_end(client, naps):
    async with ScriptedModelServer(*[status(500)] * 5) as server:
        chunks = []
        with pytest.raises(BackendError) as caught:
            await collect(client(server, attempts=5), into=chunks)
    assert caught.value.fault.code == "server_error"
    assert naps.taken == [0.5, 1.0, 2.0, 4.0]
    assert [waiting.attempt for waiting in only(chunks, RetryScheduled)] == [2, 3, 4, 5]


def test_pauses_are_spread_and_bounded():
    low, high = RetryPolicy(jitter=lambda: 0.0), RetryPolicy(jitter=lambda: 1.0)
    assert (low.pause(1, None), high.pause(1, None)) == (0.25, 0.5)
    assert high.pause(50, None) == high.max_pause
    assert {RetryPolicy().pause(3, None) for _ in range(20)} != {RetryPolicy().pause(3, None)}


@pytest.mark.req("MD-5")
@pytest.mark.parametrize(
    ("headers", "pause"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0"}, 0.5),
        ({"retry-after-ms": "2500"}, 2.5),
        ({"retry-after": "x"}, 0.5),
    ],
)
async def test_the_server_may_ask_for_a_longer_pause(client, naps, headers, pause):
    async with ScriptedModelServer(status(429, {"error": "slow down"}, headers=headers), text("a")) as server:
        await collect(client(server))
    assert naps.taken == [pause]


@pytest.mark.req("MD-5")
@pytest.mark.parametrize("wait", ["61", "7200", "999999", "999999999999"])
async def test_a_pause_of_hours_is_told_and_not_waited_for(client, naps, wait):
    limit = status(429, {"error": {"message": "limit"}}, headers={"retry-after": wait})
    async with ScriptedModelServer(limit) as server:
        with pytest.raises(BackendError, match=r"asks to wait until .*:") as caught:
            await collect(client(server))
    assert caught.value.fault.code == "rate_limited"
    assert naps.taken == []


def test_a_date_to_wait_until():
    date = email.utils.formatdate(time.time() + 30, usegmt=True)
    assert 27 < parse_retry_after({"retry-after": date}) <= 30
    assert parse_retry_after({"retry-after": "Mon, 01 Jan 1990 00:00:00 GMT"}) == 0
    for odd in ("soon", "-5", "1e9", "9" * 50, "Mon, 99 Foo 2020", "inf", "nan", ""):
        assert parse_retry_after({"retry-after": odd}) is None


@pytest.mark.req("MD-5")
@pytest.mark.parametrize(
    "fault",
    [
        text("abcdef", chunks=3).cut_after(600),
        text("abcdef", chunks=3).cut_after(600, reset=True),
        text("abcdef", chunks=3).cut_after(600).with_framing("close"),
        text("abcdef", chunks=3).cut_after(600).with_framing("length"),
        text("abcdef", chunks=3).stall_after(3),
        text("abcdef", chunks=3).stall_after(3, comments=True),
        sse_reply(delta(content="abcd"), done=False),
        sse_reply(delta(content="abcd"), {"error": {"message": "died", "code": 500}}),
    ],
)
async def test_words_already_shown_are_kept_and_never_asked_for_again(client, naps, fault):
    chunks = []
    async with ScriptedModelServer(fault) as server:
        with pytest.raises(BackendError, match="so the reply is cut; what came is kept") as caught:
            await collect(client(server, patience=HASTY), into=chunks)
    assert words(chunks) in ("ab", "abcd", "abcdef")
    assert caught.value.fault.code == "cut"
    assert len(server.requests) == 1
    assert naps.taken == []


@pytest.mark.req("MD-5")
async def test_words_held_back_come_out_when_the_stream_breaks(client):
    chunks = []
    async with ScriptedModelServer(sse_reply(delta(content="<think>why</thin"), done=False), text("x")) as server:
        await collect(client(server), into=chunks)
    assert thoughts(chunks) == "why</thin"
    async with ScriptedModelServer(sse_reply(delta(content="<thi"), done=False)) as server:
        with pytest.raises(BackendError):
            await collect(client(server), into=(chunks := []))
    assert words(chunks) == "<thi"


@pytest.mark.req("MD-5")
async def test_thoughts_do_not_keep_a_reply_from_beginning_anew(client):
    async with ScriptedModelServer(text("x", thought="mm").cut_after(500), text("hello", thought="so")) as server:
        chunks = await collect(client(server))
    (waiting,) = only(chunks, RetryScheduled)
    anew = chunks[chunks.index(waiting) :]
    assert (thoughts(anew), words(chunks)) == ("so", "hello")


@pytest.mark.req("MD-5")
@pytest.mark.parametrize(
    "fault",
    [
        stall("head"),
        stall("body"),
        keep_alive_only(),
        raw(*[b"x"] * 20).stall_after(20),
        sse_reply(delta(content="")).stall_after(1),
        sse_reply(delta(content="")).stall_after(1, comments=True),
        calls([("read", {"path": "a"})]).stall_after(2),
        calls([("read", {"path": "a"})]).stall_after(2, comments=True),
        raw(b'{"choices": [').stall_after(1),
    ],
)
async def test_a_stall_is_shown_and_then_asked_again(client, naps, fault):
    async with ScriptedModelServer(fault, text("hello")) as server:
        chunks = await collect(client(server, patience=HASTY))
        await server.wait_for_disconnects()
    assert only(chunks, NoData)[0].reason.startswith(f"no data from 127.0.0.1:{server.port} for")
    (again,) = only(chunks, RetryScheduled)
    assert again.attempt == 2
    assert "has sent nothing for" in again.reason
    assert words(chunks) == "hello"


@pytest.mark.req("MD-5")
async def test_a_stall_on_the_last_attempt_is_a_typed_error(client):
    async with ScriptedModelServer(stall()) as server:
        with pytest.raises(BackendError) as caught:
            await collect(client(server, patience=HASTY, attempts=1))
        await server.wait_for_disconnects()
    assert caught.value.fault.code == "stalled"


@pytest.mark.req("MD-5")
async def test_no_call_is_passed_on_twice(client):
    wanted = calls([("bash", {"command": "make"})])
    async with ScriptedModelServer(wanted.stall_after(3), wanted) as server:
        chunks = await collect(client(server, patience=HASTY))
    assert [call.tool for call in only(chunks, CallChunk)] == ["bash"]


async def test_nobody_there_is_said_after_the_attempts(client, naps, unused_tcp_port):
    model = client(None, base_url=f"http://127.0.0.1:{unused_tcp_port}")
    with pytest.raises(BackendError, match="nothing answers at") as caught:
        await collect(model)
    assert caught.value.fault.code == "unreachable"
    assert len(naps.taken) == 2


async def test_cancelling_a_pause_ends_it(client):
    async def forever(_):
        await asyncio.Event().wait()

    async with ScriptedModelServer(status(500)) as server:
        model = client(server, retries=RetryPolicy(sleep=forever))
        task = asyncio.create_task(collect(model, into=(chunks := [])))
        while not only(chunks, RetryScheduled):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_cancelling_a_stalled_reply_ends_its_connection(client):
    async with ScriptedModelServer(text("abc").stall_after(2)) as server:
        task = asyncio.create_task(collect(client(server), into=(chunks := [])))
        while not only(chunks, TextChunk):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.wait_for_disconnects()


class TestWatch:
    def _watch(self, **patience):
        self.now = 100.0
        return StallDetector(StallTimeouts(**patience), "h:1", lambda: self.now)

    def test_silence_is_shown_after_five_seconds_and_again(self):
        watch = self._watch()
        shown = []
        for _ in range(17):
            self.now += 1
            shown.append(watch.no_data())
        assert [at + 1 for at, waiting in enumerate(shown) if waiting] == [5, 10, 15]
        assert shown[4] == NoData(5.0, "no data from h:1 for 5 s")

    def test_the_first_sign_may_take_longer_than_the_next(self):
        watch = self._watch(first=100, silent=20)
        self.now += 99
        watch.no_data()
        watch.data_received()
        self.now += 19
        watch.no_data()
        self.now += 1
        with pytest.raises(BackendError) as caught:
            watch.no_data()
        assert caught.value.fault.code == "stalled"


@pytest.mark.req("MD-5")
@pytest.mark.parametrize(("piece", "stalls"), [(1, True), (1000, False)])
async def test_bytes_that_drip_are_a_stall_and_a_large_event_on_its_way_is_none(client, piece, stalls):
    """By a clock that goes on by fifteen seconds whenever somebody looks."""
    looks = itertools.count(0, 15)
    large = sse_event(delta(content="x" * 200 * piece))
    pieces = [large[at : at + piece] for at in range(0, len(large), piece)]
    end = sse_event({"choices": [{"delta": {}, "finish_reason": "stop"}]})
    patience = StallTimeouts(notice=1e9, first=40, silent=40, tick=5)
    async with ScriptedModelServer(raw(*pieces, end)) as server:
        model = client(server, attempts=1, patience=patience, clock=lambda: next(looks))
        if stalls:
            with pytest.raises(BackendError, match="has sent nothing"):
                await collect(model)
        else:
            assert words(await collect(model)) == "x" * 200 * piece


async def test_a_request_is_the_same_at_each_attempt(client):
    async with ScriptedModelServer(status(500), status(500), text("a")) as server:
        await collect(client(server), ask("once"))
    assert len({request.body for request in server.requests}) == 1
