"""Retries: only where they are safe and can help, and always reported."""

import asyncio
import email.utils
import itertools
import time

import pytest
from model_helpers import collect, make_request, of_type, text_of, thoughts_of

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

SHORT_TIMEOUTS = StallTimeouts(notice=0.02, first=0.06, silent=0.06, tick=0.01)


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
async def test_failure_before_any_text_is_retried(client, sleeps, fault):
    async with ScriptedModelServer(fault, text("hello")) as server:
        chunks = await collect(client(server))
    assert text_of(chunks) == "hello"
    assert chunks[-1] == ReplyFinished("stop")
    (retry,) = of_type(chunks, RetryScheduled)
    assert (retry.attempt, retry.seconds) == (2, 0.5)
    assert f"127.0.0.1:{server.port}" in retry.reason
    assert sleeps.seconds == [0.5]


@pytest.mark.req("MD-5")
@pytest.mark.parametrize("code", [400, 401, 402, 403, 404, 422])
async def test_permanent_errors_are_not_retried(client, sleeps, code):
    async with ScriptedModelServer(status(code)) as server:
        with pytest.raises(BackendError):
            await collect(client(server))
    assert sleeps.seconds == []


@pytest.mark.req("MD-5")
async def test_exceeded_quota_is_not_retried(client, sleeps):
    quota_error = status(429, {"error": {"code": "insufficient_quota", "message": "check your billing"}})
    async with ScriptedModelServer(quota_error) as server:
        with pytest.raises(BackendError) as caught:
            await collect(client(server))
    assert caught.value.fault.code == "quota"
    assert sleeps.seconds == []


@pytest.mark.req("MD-5")
async def test_pauses_grow_and_attempts_are_limited(client, sleeps):
    async with ScriptedModelServer(*[status(500)] * 5) as server:
        chunks = []
        with pytest.raises(BackendError) as caught:
            await collect(client(server, attempts=5), into=chunks)
    assert caught.value.fault.code == "server_error"
    assert sleeps.seconds == [0.5, 1.0, 2.0, 4.0]
    assert [retry.attempt for retry in of_type(chunks, RetryScheduled)] == [2, 3, 4, 5]


def test_pauses_have_jitter_and_a_maximum():
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
async def test_retry_after_header_extends_the_pause(client, sleeps, headers, pause):
    async with ScriptedModelServer(status(429, {"error": "slow down"}, headers=headers), text("a")) as server:
        await collect(client(server))
    assert sleeps.seconds == [pause]


@pytest.mark.req("MD-5")
@pytest.mark.parametrize("wait", ["61", "7200", "999999", "999999999999"])
async def test_long_pause_is_reported_instead_of_waiting(client, sleeps, wait):
    limit = status(429, {"error": {"message": "limit"}}, headers={"retry-after": wait})
    async with ScriptedModelServer(limit) as server:
        with pytest.raises(BackendError, match=r"asks to wait until .*:") as caught:
            await collect(client(server))
    assert caught.value.fault.code == "rate_limited"
    assert sleeps.seconds == []


def test_retry_after_date():
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
async def test_no_retry_after_text_was_yielded(client, sleeps, fault):
    chunks = []
    async with ScriptedModelServer(fault) as server:
        with pytest.raises(BackendError, match="the reply is incomplete; the partial reply is saved") as caught:
            await collect(client(server, timeouts=SHORT_TIMEOUTS), into=chunks)
    assert text_of(chunks) in ("ab", "abcd", "abcdef")
    assert caught.value.fault.code == "cut"
    assert len(server.requests) == 1
    assert sleeps.seconds == []


@pytest.mark.req("MD-5")
async def test_text_held_back_is_returned_when_the_stream_breaks(client):
    chunks = []
    async with ScriptedModelServer(sse_reply(delta(content="<think>why</thin"), done=False), text("x")) as server:
        await collect(client(server), into=chunks)
    assert thoughts_of(chunks) == "why</thin"
    async with ScriptedModelServer(sse_reply(delta(content="<thi"), done=False)) as server:
        with pytest.raises(BackendError):
            await collect(client(server), into=(chunks := []))
    assert text_of(chunks) == "<thi"


@pytest.mark.req("MD-5")
async def test_reply_with_only_thoughts_is_retried(client):
    async with ScriptedModelServer(text("x", thought="mm").cut_after(500), text("hello", thought="so")) as server:
        chunks = await collect(client(server))
    (retry,) = of_type(chunks, RetryScheduled)
    after_retry = chunks[chunks.index(retry) :]
    assert (thoughts_of(after_retry), text_of(chunks)) == ("so", "hello")


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
async def test_stall_is_reported_and_retried(client, sleeps, fault):
    async with ScriptedModelServer(fault, text("hello")) as server:
        chunks = await collect(client(server, timeouts=SHORT_TIMEOUTS))
        await server.wait_for_disconnects()
    assert of_type(chunks, NoData)[0].reason.startswith(f"no data from 127.0.0.1:{server.port} for")
    (retry,) = of_type(chunks, RetryScheduled)
    assert retry.attempt == 2
    assert "has sent nothing for" in retry.reason
    assert text_of(chunks) == "hello"


@pytest.mark.req("MD-5")
async def test_stall_on_the_last_attempt_is_an_error(client):
    async with ScriptedModelServer(stall()) as server:
        with pytest.raises(BackendError) as caught:
            await collect(client(server, timeouts=SHORT_TIMEOUTS, attempts=1))
        await server.wait_for_disconnects()
    assert caught.value.fault.code == "stalled"


@pytest.mark.req("MD-5")
async def test_no_call_is_yielded_twice(client):
    reply = calls([("bash", {"command": "make"})])
    async with ScriptedModelServer(reply.stall_after(3), reply) as server:
        chunks = await collect(client(server, timeouts=SHORT_TIMEOUTS))
    assert [call.tool for call in of_type(chunks, CallChunk)] == ["bash"]


async def test_connection_refused_is_raised_after_all_attempts(client, sleeps, unused_tcp_port):
    model = client(None, base_url=f"http://127.0.0.1:{unused_tcp_port}")
    with pytest.raises(BackendError, match="connection refused by") as caught:
        await collect(model)
    assert caught.value.fault.code == "unreachable"
    assert len(sleeps.seconds) == 2


async def test_pause_can_be_cancelled(client):
    async def forever(_):
        await asyncio.Event().wait()

    async with ScriptedModelServer(status(500)) as server:
        model = client(server, retries=RetryPolicy(sleep=forever))
        task = asyncio.create_task(collect(model, into=(chunks := [])))
        while not of_type(chunks, RetryScheduled):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_cancelling_a_stalled_reply_closes_the_connection(client):
    async with ScriptedModelServer(text("abc").stall_after(2)) as server:
        task = asyncio.create_task(collect(client(server), into=(chunks := [])))
        while not of_type(chunks, TextChunk):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.wait_for_disconnects()


class TestStallDetector:
    def _make_detector(self, **timeouts):
        self.now = 100.0
        return StallDetector(StallTimeouts(**timeouts), "h:1", lambda: self.now)

    def test_notices_every_five_seconds(self):
        detector = self._make_detector()
        notices = []
        for _ in range(17):
            self.now += 1
            notices.append(detector.no_data())
        assert [index + 1 for index, notice in enumerate(notices) if notice] == [5, 10, 15]
        assert notices[4] == NoData(5.0, "no data from h:1 for 5 s")

    def test_first_data_may_take_longer_than_later_data(self):
        detector = self._make_detector(first=100, silent=20)
        self.now += 99
        detector.no_data()
        detector.data_received()
        self.now += 19
        detector.no_data()
        self.now += 1
        with pytest.raises(BackendError) as caught:
            detector.no_data()
        assert caught.value.fault.code == "stalled"


@pytest.mark.req("MD-5")
@pytest.mark.parametrize(("size", "stalls"), [(1, True), (1000, False)])
async def test_single_bytes_are_a_stall_but_a_large_event_is_not(client, size, stalls):
    """The fake clock advances fifteen seconds on each call."""
    ticks = itertools.count(0, 15)
    large = sse_event(delta(content="x" * 200 * size))
    parts = [large[start : start + size] for start in range(0, len(large), size)]
    end = sse_event({"choices": [{"delta": {}, "finish_reason": "stop"}]})
    timeouts = StallTimeouts(notice=1e9, first=40, silent=40, tick=5)
    async with ScriptedModelServer(raw(*parts, end)) as server:
        model = client(server, attempts=1, timeouts=timeouts, clock=lambda: next(ticks))
        if stalls:
            with pytest.raises(BackendError, match="has sent nothing"):
                await collect(model)
        else:
            assert text_of(await collect(model)) == "x" * 200 * size


@pytest.mark.req("MD-5")
@pytest.mark.parametrize("noise", [b": ping\n", b": ping\n\n", b": endless ", b"event: ping\n\n", b"id: 7\r\n", b"\n"])
async def test_endless_comments_are_a_stall(client, noise):
    """The fake clock advances fifteen seconds on each call."""
    ticks = itertools.count(0, 15)
    timeouts = StallTimeouts(notice=1e9, first=40, silent=40, tick=5)
    async with ScriptedModelServer(raw(b": start\n", *([noise * 200] * 50))) as server:
        model = client(server, attempts=1, timeouts=timeouts, clock=lambda: next(ticks))
        with pytest.raises(BackendError, match="has sent nothing"):
            await collect(model)


async def test_request_is_the_same_in_each_attempt(client):
    async with ScriptedModelServer(status(500), status(500), text("a")) as server:
        await collect(client(server), make_request("once"))
    assert len({request.body for request in server.requests}) == 1
