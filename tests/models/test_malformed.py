"""Malformed streams over real HTTP: accepted where the meaning is certain, else a typed error."""

import json

import pytest
from model_helpers import collect, of_type, text_of

from ostler.core.errors import BackendError
from ostler.models.dialects.dialect import apply_dialect
from ostler.models.model_types import CallChunk, ReplyFinished, Usage
from ostler.testing.model_server import ScriptedModelServer, raw, sse_event

pytestmark = pytest.mark.req("MD-4")

DIALECTS = ("native", "xnl", "text")
CALL = {"index": 0, "id": "c", "type": "function", "function": {"name": "read", "arguments": '{"path":"a"}'}}


def chunk(**delta):
    return {"choices": [{"index": 0, "delta": delta}]}


def end(reason="stop"):
    return {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}


def call_chunk(**changes):
    return chunk(tool_calls=[CALL | changes])


A, DONE = chunk(content="a"), b"data: [DONE]\n\n"


def stream_of(*data):
    return raw(*(item if isinstance(item, bytes) else sse_event(item) for item in data))


def line(document):
    return json.dumps(document).encode()


ODD_STREAMS = {
    "no blank lines": raw(b"".join(b"data: " + line(event) + b"\n" for event in (A, end())) + b"data: [DONE]\n"),
    "JSON lines": raw(line(A) + b"\n" + line(end()) + b"\n"),
    "pretty JSON over lines": raw(b"data: {\ndata: " + line(A)[1:] + b"\n\n", sse_event(end()), DONE),
    "a marker with a blank": stream_of(A, b"data: [DONE] \n\n"),
    "a marker in lower case": stream_of(A, b"data: [done]\n\n"),
    "null": stream_of("null", A, end()),
    "an empty text": stream_of('""', A, end()),
    "a number": stream_of("5", A, end()),
    "an empty list": stream_of("[]", A, end()),
    "plain text": stream_of("keep-alive", A, end()),
    "a falsy error": stream_of({"error": "", **A}, {"error": False, **end()}),
    "an empty error": stream_of({"error": {}, **A}, end()),
    "junk after the end": stream_of(A, end(), b"data: {broken\n\n", DONE),
    "a huge count": stream_of(A, end(), b'data: {"choices":[],"usage":{"prompt_tokens":' + b"9" * 5000 + b"}}\n\n"),
    "invalid counts": stream_of(A, end(), {"choices": [], "usage": {"prompt_tokens": True, "completion_tokens": []}}),
    "NaN": stream_of(b'data: {"choices":[{"delta":{"content":"a"},"logprobs":NaN}]}\n\n', end()),
    "choices as an object": stream_of({"choices": {"delta": {"content": "x"}}}, A, end()),
    "choices as strings": stream_of({"choices": ["x"]}, A, end()),
    "choices in choices": stream_of({"choices": [[]]}, A, end()),
    "a delta as text": stream_of({"choices": [{"delta": "x"}]}, A, end()),
    "a delta as a list": stream_of({"choices": [{"delta": ["x"]}]}, A, end()),
    "null as a call": stream_of(chunk(content="a", tool_calls=[None]), end()),
    "a key twice": stream_of(b'data: {"choices":[{"delta":{"content":"x","content":"a"}}]}\n\n', end()),
    "text after the marker": stream_of(A, end(), DONE, chunk(content="x")),
    "a byte order mark": raw(b"\xef\xbb\xbf" + sse_event(A), sse_event(end()), DONE),
    "other fields": raw(b"id: 1\nretry: 5\nevent: x\n" + sse_event(A), sse_event(end()), DONE),
}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("odd", ODD_STREAMS)
async def test_text_in_malformed_streams(client, odd, dialect):
    async with ScriptedModelServer(ODD_STREAMS[odd]) as server:
        chunks = await collect(apply_dialect(client(server), dialect))
    assert (text_of(chunks), chunks[-1]) == ("a", ReplyFinished("stop"))


ODD_CALLS = {
    "index as text": [call_chunk(index="0")],
    "index null": [call_chunk(index=None)],
    "index as a fraction": [call_chunk(index=0.0)],
    "index below zero": [call_chunk(index=-1)],
    "arguments as an object": [call_chunk(function={"name": "read", "arguments": {"path": "a"}})],
    "no function at first": [call_chunk(function=None), chunk(tool_calls=[{"index": 0, "function": CALL["function"]}])],
    "an id that changes": [
        call_chunk(function={"name": "read", "arguments": '{"pa'}),
        chunk(tool_calls=[{"index": 0, "id": "other", "function": {"arguments": 'th":"a"}'}}]),
    ],
    "function_call": [chunk(function_call={"name": "read"}), chunk(function_call={"arguments": '{"path":"a"}'})],
}


@pytest.mark.parametrize("odd", ODD_CALLS)
async def test_calls_in_malformed_streams(client, odd):
    async with ScriptedModelServer(stream_of(*ODD_CALLS[odd], end("tool_calls"), DONE)) as server:
        chunks = await collect(client(server))
    assert [(call.tool, call.arguments) for call in of_type(chunks, CallChunk)] == [("read", '{"path":"a"}')]
    assert chunks[-1] == ReplyFinished("calls")


ERRORS = {
    "plain text as an error": (stream_of(A, b"event: error\ndata: upstream died\n\n"), "cut", "message: upstream died"),
    "a number as error code": (stream_of({"error": {"message": "x", "code": "429"}}), "rate_limited", r"\(429\): x"),
    "an error in a list": (raw(b'[{"error":{"message":"bad","code":400}}]'), "bad_request", "bad"),
    "a list as reply": (raw(b"[]"), "malformed", "not a JSON object"),
    "depth": (stream_of(A, b'data: {"choices":' + b"[" * 100_000 + b"\n\n"), "malformed", "too deeply"),
    "only the marker": (stream_of(DONE), "cut", "too early"),
    "blank lines": (raw(b" \n\n \n"), "cut", "too early"),
}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("fault", ERRORS)
async def test_unreadable_replies_are_typed_errors(client, fault, dialect):
    reply, code, message = ERRORS[fault]
    async with ScriptedModelServer(reply) as server:
        with pytest.raises(BackendError, match=message) as caught:
            await collect(apply_dialect(client(server, attempts=1), dialect))
    assert caught.value.fault.code == code


START = {"type": "message_start", "message": {"usage": {"input_tokens": 5}}}
STOP = {"type": "message_stop"}
TEXT_DELTA = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"}}
TOOL_USE = {"type": "tool_use", "id": "t", "name": "read", "input": {}}


def message_end(reason="end_turn", usage=None):
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage or {"output_tokens": 3}}


def block_start(content, index=0):
    return {"type": "content_block_start", "index": index, "content_block": content}


def json_delta(text, index=0):
    return {"type": "content_block_delta", "index": index, "delta": {"type": "input_json_delta", "partial_json": text}}


SEARCH = [
    block_start({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}, 1),
    json_delta('{"q":1}', 1),
]
ODD_ANTHROPIC_STREAMS = {
    "no index": [START, TEXT_DELTA | {"index": None}, message_end(), STOP],
    "index as text": [START, TEXT_DELTA | {"index": "0"}, message_end(), STOP],
    "no type": [START, {"type": None}, {"x": 1}, TEXT_DELTA, message_end(), STOP],
    "a delta as text": [START, TEXT_DELTA | {"delta": "x"}, TEXT_DELTA, message_end(), STOP],
    "no delta": [START, TEXT_DELTA | {"delta": None}, TEXT_DELTA, message_end(), STOP],
    "null": [START, b"data: null\n\n", TEXT_DELTA, message_end(), STOP],
    "an empty list": [START, b"data: []\n\n", TEXT_DELTA, message_end(), STOP],
    "plain text": [START, b"data: ok\n\n", TEXT_DELTA, message_end(), STOP],
    "the marker of the other API": [START, TEXT_DELTA, b"data: [DONE]\n\n"],
    "junk after the end": [START, TEXT_DELTA, message_end(), b"data: {broken\n\n", STOP],
    "a server-side tool": [START, TEXT_DELTA, *SEARCH, message_end(), STOP],
    "a falsy error": [START, TEXT_DELTA | {"error": ""}, message_end(), STOP],
    "no start": [TEXT_DELTA, message_end(), STOP],
    "no end": [START, TEXT_DELTA, message_end()],
}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("odd", ODD_ANTHROPIC_STREAMS)
async def test_text_in_malformed_anthropic_streams(client, odd, dialect):
    async with ScriptedModelServer(stream_of(*ODD_ANTHROPIC_STREAMS[odd])) as server:
        chunks = await collect(apply_dialect(client(server, "anthropic"), dialect))
    assert (text_of(chunks), chunks[-1], of_type(chunks, CallChunk)) == ("a", ReplyFinished("stop"), [])


ODD_ANTHROPIC_CALLS = {
    "complete, then in deltas": [
        block_start(TOOL_USE | {"input": {"path": "a"}}),
        json_delta('{"path":'),
        json_delta('"a"}'),
    ],
    "complete": [block_start(TOOL_USE | {"input": {"path": "a"}})],
    "as text": [block_start(TOOL_USE | {"input": '{"path":"a"}'})],
    "a delta that is an object": [block_start(TOOL_USE), json_delta({"path": "a"})],
    "no indices": [
        {"type": "content_block_start", "content_block": TOOL_USE},
        json_delta('{"path":"a"}') | {"index": None},
    ],
}


@pytest.mark.parametrize("odd", ODD_ANTHROPIC_CALLS)
async def test_calls_in_malformed_anthropic_streams(client, odd):
    async with ScriptedModelServer(
        stream_of(START, *ODD_ANTHROPIC_CALLS[odd], message_end("tool_use"), STOP)
    ) as server:
        chunks = await collect(client(server, "anthropic"))
    assert [(call.tool, call.arguments) for call in of_type(chunks, CallChunk)] == [("read", '{"path":"a"}')]


async def test_invalid_counts_in_anthropic_streams(client):
    reply = stream_of(START, TEXT_DELTA, message_end(usage={"output_tokens": True, "input_tokens": "7"}), STOP)
    async with ScriptedModelServer(reply) as server:
        assert of_type(await collect(client(server, "anthropic")), Usage) == [Usage(7, 0, 0)]


async def test_plain_text_content_in_an_anthropic_document(client):
    async with ScriptedModelServer(raw(line({"content": "a", "stop_reason": "end_turn"}))) as server:
        assert text_of(await collect(client(server, "anthropic"))) == "a"


@pytest.mark.parametrize("reply", [stream_of(A, end()), raw(line({"choices": [{"message": {"content": "a"}}]}))])
async def test_wrong_api_is_reported(client, reply):
    async with ScriptedModelServer(reply) as server:
        with pytest.raises(BackendError, match="set the profile's apiKind to openai"):
            await collect(client(server, "anthropic"))
