"""The JSON-RPC peer: both ways at once, in order, and whole after whatever the other side sends."""

import asyncio
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ostler.wire.jsonrpc import CANCELLED, INTERNAL_ERROR, METHOD_NOT_FOUND, JsonRpcPeer, PeerClosed, RpcError
from ostler.wire.jsonrpc_lines import InvalidJsonLine, LineSplitter, LineTooLong, decode, encode


class Ear:
    """A handler that notes what it hears and answers by a table of functions."""

    def __init__(self, **answers):
        self.heard = []
        self._answers = answers

    def handle_notification(self, method, params):
        self.heard.append((method, params))

    def handle_request(self, method, params):
        self.heard.append((method, params))
        if method not in self._answers:
            raise RpcError(METHOD_NOT_FOUND, f"there is no method {method!r}")
        return self._answers[method](params)


class Wire:
    """A peer under test, its frames as they leave, and a way to speak to it."""

    def __init__(self, handler=None, **options):
        self.sent = []
        self.junk = []
        self.handler = handler or Ear()
        self._more = asyncio.Event()
        self.peer = JsonRpcPeer(self._send, self.handler, on_invalid_line=self.junk.append, **options)

    def _send(self, line):
        assert line.endswith(b"\n")
        assert line.count(b"\n") == 1
        self.sent.append(json.loads(line))
        self._more.set()

    def say(self, *frames):
        self.peer.feed(b"".join(json.dumps(frame).encode() + b"\n" for frame in frames))

    async def frames(self, count):
        async with asyncio.timeout(30):
            while len(self.sent) < count:
                self._more.clear()
                await self._more.wait()
        return self.sent


async def echo(params):
    return params


async def hang(params):
    await asyncio.Event().wait()


async def fail(params):
    raise RpcError(-32002, "no such file", {"details": "it was never there"})


def pair(left, right):
    """Two peers joined, each with its handler."""
    peers = []
    peers.append(JsonRpcPeer(lambda line: peers[1].feed(line), left))
    peers.append(JsonRpcPeer(lambda line: peers[0].feed(line), right))
    return peers


async def test_requests_go_both_ways_at_once():
    async def back(params):
        return {"from right": await right.request("echo", params)}

    left, right = pair(Ear(echo=echo), Ear(back=back, fail=fail))
    assert await left.request("back", {"a": "ü"}) == {"from right": {"a": "ü"}}
    with pytest.raises(RpcError) as caught:
        await left.request("fail", {})
    assert (caught.value.code, caught.value.details) == (-32002, "no such file: it was never there")
    with pytest.raises(RpcError) as caught:
        await left.request("nothing", {})
    assert caught.value.code == METHOD_NOT_FOUND


async def test_notifications_are_heard_before_the_answer_that_follows_them():
    wire = Wire()
    asking = asyncio.ensure_future(wire.peer.request("prompt", {}))
    await wire.frames(1)
    wire.say(*({"method": "update", "params": {"n": n}} for n in range(2000)), {"id": 1, "result": "done"})
    assert await asking == "done"
    assert [params["n"] for _, params in wire.handler.heard] == list(range(2000))


async def test_a_request_is_begun_before_a_later_notification_is_heard():
    wire = Wire(Ear(prompt=echo))
    wire.say({"id": 7, "method": "prompt", "params": {}}, {"method": "cancel", "params": {}})
    assert [method for method, _ in wire.handler.heard] == ["prompt", "cancel"]
    await wire.frames(1)


async def test_answers_come_out_of_order():
    wire = Wire()
    first, second = (asyncio.ensure_future(wire.peer.request(name, {})) for name in ("a", "b"))
    await wire.frames(2)
    wire.say({"id": 2, "result": "second"}, {"id": 1, "result": "first"})
    assert (await first, await second) == ("first", "second")


@pytest.mark.parametrize("request_id", [1, "one", None, 0, ""])
async def test_a_request_is_answered_with_its_own_id(request_id):
    wire = Wire(Ear(echo=echo))
    wire.say({"id": request_id, "method": "echo", "params": {"x": 1}})
    assert (await wire.frames(1))[0] == {"jsonrpc": "2.0", "id": request_id, "result": {"x": 1}}


JUNK = [
    b"npm notice new version",
    b"42",
    b"[1]",
    b"null",
    b'"text"',
    b"{}",
    b'{"jsonrpc":"2.0"}',
    b'{"method":7}',
    b"{",
]
JUNK += [b"\xff\xfe", b"[" * 5000, b'{"id":{},"result":1}', b'{"id":1,"method":5}']


@pytest.mark.req("AC-5")
@pytest.mark.parametrize("line", JUNK)
async def test_junk_is_kept_and_survived(line):
    wire = Wire()
    asking = asyncio.ensure_future(wire.peer.request("a", {}))
    await wire.frames(1)
    wire.peer.feed(line + b"\r\n\n")
    wire.say({"id": 1, "result": "still here"})
    assert await asking == "still here"
    assert wire.junk == [line]


@pytest.mark.parametrize(("line", "code"), [(b"{nonsense", -32700), (b"[]", -32600), (b"{}", -32600)])
async def test_whoever_serves_says_what_was_no_frame(line, code):
    wire = Wire(is_server=True)
    wire.peer.feed(line + b"\n")
    assert [(frame["id"], frame["error"]["code"]) for frame in wire.sent] == [(None, code)]


@pytest.mark.parametrize(
    ("frame", "code", "message"),
    [
        ({"error": "plain text"}, INTERNAL_ERROR, "plain text"),
        ({"error": {"message": "no code"}}, INTERNAL_ERROR, "no code"),
        ({"error": {}}, INTERNAL_ERROR, "an error without a message"),
        ({"error": {"code": -32000, "message": "log in", "data": "with a browser"}}, -32000, "log in: with a browser"),
    ],
)
async def test_errors_as_other_people_write_them(frame, code, message):
    wire = Wire()
    asking = asyncio.ensure_future(wire.peer.request("a", {}))
    await wire.frames(1)
    wire.say({"id": 1, **frame})
    with pytest.raises(RpcError) as caught:
        await asking
    assert (caught.value.code, caught.value.details) == (code, message)


async def test_an_answer_without_a_result_is_an_empty_one():
    wire = Wire()
    asking = asyncio.ensure_future(wire.peer.request("a", {}))
    await wire.frames(1)
    wire.say({"id": 99, "result": "for nobody"}, {"id": 1}, {"id": 1, "result": "too late"})
    assert await asking is None


async def test_a_cancelled_request_is_told():
    wire = Wire()
    asking = asyncio.ensure_future(wire.peer.request("a", {}))
    await wire.frames(1)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert wire.sent[1] == {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 1}}


@pytest.mark.req("AC-2")
async def test_the_other_side_cancels_a_request_even_at_once():
    wire = Wire(Ear(hang=hang))
    wire.say({"id": "x", "method": "hang"}, {"method": "$/cancel_request", "params": {"requestId": "x"}})
    wire.say({"method": "$/cancel_request", "params": {"requestId": [1]}}, {"method": "$/cancel_request"})
    assert [(frame["id"], frame["error"]["code"]) for frame in await wire.frames(1)] == [("x", CANCELLED)]


async def test_the_end_fails_what_was_asked_and_stops_what_is_answered():
    stopped = asyncio.Event()

    async def work(params):
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    wire = Wire(Ear(work=work))
    asking = asyncio.ensure_future(wire.peer.request("a", {}))
    await wire.frames(1)
    wire.say({"id": 1, "method": "work"})
    wire.peer.end("it left")
    with pytest.raises(PeerClosed, match="it left"):
        await asking
    with pytest.raises(PeerClosed, match="it left"):
        await wire.peer.request("b", {})
    await wire.peer.aclose()
    assert stopped.is_set()
    wire.peer.notify("too late", {})
    assert len(wire.sent) == 1


async def test_a_last_line_without_its_end_counts():
    wire = Wire()
    asking = asyncio.ensure_future(wire.peer.request("a", {}))
    await wire.frames(1)
    wire.peer.feed(b'{"id":1,"result":5}')
    wire.peer.end("over")
    assert await asking == 5


async def test_a_line_beyond_all_measure_ends_it():
    wire = Wire(max_line_bytes=1000)
    asking = asyncio.ensure_future(wire.peer.request("a", {}))
    await wire.frames(1)
    for _ in range(3):
        wire.peer.feed(b"x" * 400)
    with pytest.raises(PeerClosed, match="more than 1000 bytes"):
        await asking


async def test_too_many_open_requests_are_refused_and_one_id_is_used_once():
    wire = Wire(Ear(hang=hang), max_open_requests=2)
    wire.say(*({"id": number, "method": "hang"} for number in (1, 1, 2, 3)))
    told = [(frame["id"], frame["error"]["message"]) for frame in wire.sent]
    assert told == [(1, "this id is in use"), (3, "2 requests are open already")]
    await wire.peer.aclose()


async def test_the_mirror_sees_the_lines_as_they_are():
    seen = []
    wire = Wire(Ear(echo=echo), mirror=lambda direction, line: seen.append((direction, line)))
    odd = b'{ "method":"note" ,"params":{"z":1,"a":1e2}}'
    wire.peer.feed(odd + b"\r\nnoise\n")
    wire.peer.notify("bye", {})
    assert seen == [("in", odd), ("in", b"noise"), ("out", b'{"jsonrpc":"2.0","method":"bye","params":{}}')]


@given(st.lists(st.binary(max_size=30)), st.integers(1, 9))
@settings(max_examples=60, deadline=None)
def test_lines_are_the_same_however_they_are_cut(parts, size):
    data = b"\n".join(part.replace(b"\n", b"") for part in parts)
    cutter, found = LineSplitter(), []
    for at in range(0, len(data), size):
        found += cutter.feed(data[at : at + size])
    found += [rest] if (rest := cutter.take_rest()) else []
    assert found == [line.strip() for line in data.split(b"\n") if line.strip()]


def test_a_long_line_in_small_bits_is_joined_once():
    cutter = LineSplitter(max_bytes=2_000_000)
    for _ in range(100_000):
        assert not list(cutter.feed(b"ten bytes!"))
    assert [len(line) for line in cutter.feed(b"\n")] == [1_000_000]
    with pytest.raises(LineTooLong):
        list(cutter.feed(b"x" * 2_000_001))


def test_half_a_pair_is_mended_and_sent():
    assert decode(b'{"a":"x\\ud83d","b":"\\ud83d\\ude00"}') == {"a": "x\ufffd", "b": "😀"}
    assert encode({"path": "bad\udcff"}) == b'{"path":"bad\\udcff"}'
    for line in (b'{"a":"\\ud83d', b"\\u", b'{"a":\xff"\\ud83d"}'):
        with pytest.raises(InvalidJsonLine):
            decode(line)
