"""The JSON-RPC peer: concurrent requests in both directions, ordering, and robustness against invalid input."""

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tiers import examples

from ostler.wire.jsonrpc import (
    ACP_CANCEL,
    CANCELLED,
    INTERNAL_ERROR,
    MCP_CANCEL,
    METHOD_NOT_FOUND,
    JsonRpcPeer,
    PeerClosed,
    RpcError,
)
from ostler.wire.jsonrpc_lines import InvalidJsonLine, LineSplitter, LineTooLong, decode, encode


class RecordingHandler:
    """A handler that records what it receives and answers with the given functions."""

    def __init__(self, **answers):
        self.received = []
        self._answers = answers

    def handle_notification(self, method, params):
        self.received.append((method, params))

    def handle_request(self, method, params):
        self.received.append((method, params))
        if method not in self._answers:
            raise RpcError(METHOD_NOT_FOUND, f"there is no method {method!r}")
        return self._answers[method](params)


class PeerFixture:
    """A peer under test with the frames it sent, and a way to send frames to it."""

    def __init__(self, handler=None, **options):
        self.sent = []
        self.invalid_lines = []
        self.handler = handler or RecordingHandler()
        self._more = asyncio.Event()
        self.peer = JsonRpcPeer(self._send, self.handler, on_invalid_line=self.invalid_lines.append, **options)

    def _send(self, line):
        assert line.endswith(b"\n")
        assert line.count(b"\n") == 1
        self.sent.append(json.loads(line))
        self._more.set()

    def receive(self, *frames):
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
    """Return two connected peers with these handlers."""
    peers = []
    peers.append(JsonRpcPeer(lambda line: peers[1].feed(line), left))
    peers.append(JsonRpcPeer(lambda line: peers[0].feed(line), right))
    return peers


async def test_requests_in_both_directions():
    async def back(params):
        return {"from right": await right.request("echo", params)}

    left, right = pair(RecordingHandler(echo=echo), RecordingHandler(back=back, fail=fail))
    assert await left.request("back", {"a": "ü"}) == {"from right": {"a": "ü"}}
    with pytest.raises(RpcError) as caught:
        await left.request("fail", {})
    assert (caught.value.code, caught.value.details) == (-32002, "no such file: it was never there")
    with pytest.raises(RpcError) as caught:
        await left.request("nothing", {})
    assert caught.value.code == METHOD_NOT_FOUND


async def test_notifications_are_handled_before_a_later_response():
    wire = PeerFixture()
    request = asyncio.ensure_future(wire.peer.request("prompt", {}))
    await wire.frames(1)
    wire.receive(*({"method": "update", "params": {"n": n}} for n in range(2000)), {"id": 1, "result": "done"})
    assert await request == "done"
    assert [params["n"] for _, params in wire.handler.received] == list(range(2000))


async def test_request_is_handled_before_a_later_notification():
    wire = PeerFixture(RecordingHandler(prompt=echo))
    wire.receive({"id": 7, "method": "prompt", "params": {}}, {"method": "cancel", "params": {}})
    assert [method for method, _ in wire.handler.received] == ["prompt", "cancel"]
    await wire.frames(1)


async def test_responses_may_arrive_out_of_order():
    wire = PeerFixture()
    first, second = (asyncio.ensure_future(wire.peer.request(name, {})) for name in ("a", "b"))
    await wire.frames(2)
    wire.receive({"id": 2, "result": "second"}, {"id": 1, "result": "first"})
    assert (await first, await second) == ("first", "second")


@pytest.mark.parametrize("request_id", [1, "one", None, 0, ""])
async def test_response_has_the_request_id(request_id):
    wire = PeerFixture(RecordingHandler(echo=echo))
    wire.receive({"id": request_id, "method": "echo", "params": {"x": 1}})
    assert (await wire.frames(1))[0] == {"jsonrpc": "2.0", "id": request_id, "result": {"x": 1}}


INVALID_LINES = [
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
INVALID_LINES += [b"\xff\xfe", b"[" * 5000, b'{"id":{},"result":1}', b'{"id":1,"method":5}']


@pytest.mark.req("AC-5")
@pytest.mark.parametrize("line", INVALID_LINES)
async def test_invalid_lines_are_reported_and_skipped(line):
    wire = PeerFixture()
    request = asyncio.ensure_future(wire.peer.request("a", {}))
    await wire.frames(1)
    wire.peer.feed(line + b"\r\n\n")
    wire.receive({"id": 1, "result": "still here"})
    assert await request == "still here"
    assert wire.invalid_lines == [line]


@pytest.mark.parametrize(("line", "code"), [(b"{nonsense", -32700), (b"[]", -32600), (b"{}", -32600)])
async def test_server_answers_invalid_lines_with_errors(line, code):
    wire = PeerFixture(is_server=True)
    wire.peer.feed(line + b"\n")
    assert [(frame["id"], frame["error"]["code"]) for frame in wire.sent] == [(None, code)]


@pytest.mark.parametrize(
    ("frame", "code", "message"),
    [
        ({"error": "plain text"}, INTERNAL_ERROR, "plain text"),
        ({"error": {"message": "no code"}}, INTERNAL_ERROR, "no code"),
        ({"error": {}}, INTERNAL_ERROR, "error without a message"),
        ({"error": {"code": -32000, "message": "log in", "data": "with a browser"}}, -32000, "log in: with a browser"),
    ],
)
async def test_malformed_errors_are_parsed(frame, code, message):
    wire = PeerFixture()
    request = asyncio.ensure_future(wire.peer.request("a", {}))
    await wire.frames(1)
    wire.receive({"id": 1, **frame})
    with pytest.raises(RpcError) as caught:
        await request
    assert (caught.value.code, caught.value.details) == (code, message)


async def test_response_without_result_is_none():
    wire = PeerFixture()
    request = asyncio.ensure_future(wire.peer.request("a", {}))
    await wire.frames(1)
    wire.receive({"id": 99, "result": "unknown id"}, {"id": 1}, {"id": 1, "result": "too late"})
    assert await request is None


@pytest.mark.parametrize("cancel_method", [ACP_CANCEL, MCP_CANCEL])
async def test_cancelled_request_is_sent(cancel_method):
    wire = PeerFixture(cancel_method=cancel_method)
    request = asyncio.ensure_future(wire.peer.request("a", {}))
    await wire.frames(1)
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    assert wire.sent[1] == {"jsonrpc": "2.0", "method": cancel_method, "params": {"requestId": 1}}


@pytest.mark.req("AC-2")
@pytest.mark.parametrize("cancel_method", [ACP_CANCEL, MCP_CANCEL])
async def test_incoming_request_can_be_cancelled_immediately(cancel_method):
    wire = PeerFixture(RecordingHandler(hang=hang), cancel_method=cancel_method)
    wire.receive({"id": "x", "method": "hang"}, {"method": cancel_method, "params": {"requestId": "x"}})
    wire.receive({"method": cancel_method, "params": {"requestId": [1]}}, {"method": cancel_method})
    wire.receive({"id": "y", "method": "unknown"})
    answers = [frame["id"] for frame in await wire.frames(2 if cancel_method == ACP_CANCEL else 1)]
    assert sorted(answers) == (["x", "y"] if cancel_method == ACP_CANCEL else ["y"]), "MCP wants no answer"
    assert all(frame["error"]["code"] == CANCELLED for frame in wire.sent if frame["id"] == "x")


async def test_end_fails_pending_and_cancels_open_requests():
    stopped = asyncio.Event()

    async def work(params):
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    wire = PeerFixture(RecordingHandler(work=work))
    request = asyncio.ensure_future(wire.peer.request("a", {}))
    await wire.frames(1)
    wire.receive({"id": 1, "method": "work"})
    wire.peer.end("it left")
    with pytest.raises(PeerClosed, match="it left"):
        await request
    with pytest.raises(PeerClosed, match="it left"):
        await wire.peer.request("b", {})
    await wire.peer.aclose()
    assert stopped.is_set()
    wire.peer.notify("too late", {})
    assert len(wire.sent) == 1


async def test_last_line_without_newline_is_handled():
    wire = PeerFixture()
    request = asyncio.ensure_future(wire.peer.request("a", {}))
    await wire.frames(1)
    wire.peer.feed(b'{"id":1,"result":5}')
    wire.peer.end("over")
    assert await request == 5


async def test_oversized_line_closes_the_connection():
    wire = PeerFixture(max_line_bytes=1000)
    request = asyncio.ensure_future(wire.peer.request("a", {}))
    await wire.frames(1)
    for _ in range(3):
        wire.peer.feed(b"x" * 400)
    with pytest.raises(PeerClosed, match="more than 1000 bytes"):
        await request


LINES = {
    "plain text": "line of output\n",
    "escapes": 'a "quoted" \\ word\t\x1b[0m\n',
    "no ascii": "很长的输出,没有字母",
    "backslashes": "\\\\\\\\ seven bytes ",
}


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
@pytest.mark.parametrize("chunk", [1000, 65_536, 100_000_000])
@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.sampled
async def test_middle_of_a_response_that_is_too_large_is_left_out(line, chunk, ascii_only):
    wire = PeerFixture()
    limit = {"max_response_bytes": 2_000_000, "shorten": True}
    request = asyncio.ensure_future(wire.peer.request("a", {}, **limit))
    await wire.frames(1)
    whole = line * (6_000_000 // len(line.encode()))
    frame = {"jsonrpc": "2.0", "id": 1, "result": {"output": f"first {whole} last", "truncated": False}}
    data = json.dumps(frame, ensure_ascii=ascii_only).encode() + b"\n"
    for start in range(0, len(data), chunk):
        wire.peer.feed(data[start : start + chunk])
    output = (await request)["output"]
    head, tail = output.split("\n[...]\n")
    assert head.removeprefix("first ") in whole
    assert whole.endswith(tail.removesuffix(" last"))
    assert 64 * 1024 < len(output.encode()) < 2_000_000


@pytest.mark.parametrize(
    ("result", "shorten"), [("x" * 3_000_000, False), (["x"] * 1_000_000, True), ("\x1b" * 1_000_000, True)]
)
async def test_large_response_that_cannot_be_shortened_is_an_error(result, shorten):
    wire = PeerFixture()
    request = asyncio.ensure_future(wire.peer.request("a", {}, max_response_bytes=2_000_000, shorten=shorten))
    await wire.frames(1)
    wire.receive({"id": 1, "result": {"output": result, "truncated": False}})
    with pytest.raises(RpcError, match="too large"):
        await request
    again = asyncio.ensure_future(wire.peer.request("b", {}))
    await wire.frames(2)
    wire.receive({"id": 2, "result": result})
    assert await again == result


async def test_too_many_requests_and_reused_ids_are_refused():
    wire = PeerFixture(RecordingHandler(hang=hang), max_open_requests=2)
    wire.receive(*({"id": number, "method": "hang"} for number in (1, 1, 2, 3)))
    errors = [(frame["id"], frame["error"]["message"]) for frame in wire.sent]
    assert errors == [(1, "this request id is already in use"), (3, "2 requests are already open")]
    await wire.peer.aclose()


async def test_mirror_receives_lines_unchanged():
    seen = []
    wire = PeerFixture(RecordingHandler(echo=echo), mirror=lambda direction, line: seen.append((direction, line)))
    unusual = b'{ "method":"note" ,"params":{"z":1,"a":1e2}}'
    wire.peer.feed(unusual + b"\r\nnoise\n")
    wire.peer.notify("bye", {})
    assert seen == [("in", unusual), ("in", b"noise"), ("out", b'{"jsonrpc":"2.0","method":"bye","params":{}}')]


@given(st.lists(st.binary(max_size=30)), st.integers(1, 9))
@examples(60)
def test_lines_do_not_depend_on_chunks(parts, size):
    data = b"\n".join(part.replace(b"\n", b"") for part in parts)
    splitter, found = LineSplitter(), []
    for offset in range(0, len(data), size):
        found += splitter.feed(data[offset : offset + size])
    found += [rest] if (rest := splitter.take_rest()) else []
    assert found == [line.strip() for line in data.split(b"\n") if line.strip()]


def test_long_line_in_small_chunks():
    splitter = LineSplitter(max_bytes=2_000_000)
    for _ in range(100_000):
        assert not list(splitter.feed(b"ten bytes!"))
    assert [len(line) for line in splitter.feed(b"\n")] == [1_000_000]
    with pytest.raises(LineTooLong):
        list(splitter.feed(b"x" * 2_000_001))


def test_unpaired_surrogates_are_replaced_and_escaped():
    assert decode(b'{"a":"x\\ud83d","b":"\\ud83d\\ude00"}') == {"a": "x\ufffd", "b": "😀"}
    assert encode({"path": "bad\udcff"}) == b'{"path":"bad\\udcff"}'
    for line in (b'{"a":"\\ud83d', b"\\u", b'{"a":\xff"\\ud83d"}'):
        with pytest.raises(InvalidJsonLine):
            decode(line)
