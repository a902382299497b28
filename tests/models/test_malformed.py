"""Streams as no specification has them, over real HTTP: understood where that is certain, else a typed error."""

import json

import pytest
from model_talk import collect, only, words

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


def called(**changes):
    return chunk(tool_calls=[CALL | changes])


A, DONE = chunk(content="a"), b"data: [DONE]\n\n"


def sent(*data):
    return raw(*(piece if isinstance(piece, bytes) else sse_event(piece) for piece in data))


def line(document):
    return json.dumps(document).encode()


WORDS = {
    "no blank lines": raw(b"".join(b"data: " + line(one) + b"\n" for one in (A, end())) + b"data: [DONE]\n"),
    "JSON lines": raw(line(A) + b"\n" + line(end()) + b"\n"),
    "pretty JSON over lines": raw(b"data: {\ndata: " + line(A)[1:] + b"\n\n", sse_event(end()), DONE),
    "a mark with a blank": sent(A, b"data: [DONE] \n\n"),
    "a mark in small letters": sent(A, b"data: [done]\n\n"),
    "null": sent("null", A, end()),
    "an empty text": sent('""', A, end()),
    "a number": sent("5", A, end()),
    "an empty list": sent("[]", A, end()),
    "words": sent("keep-alive", A, end()),
    "an error that is none": sent({"error": "", **A}, {"error": False, **end()}),
    "an empty error": sent({"error": {}, **A}, end()),
    "junk after the end": sent(A, end(), b"data: {broken\n\n", DONE),
    "a count without end": sent(A, end(), b'data: {"choices":[],"usage":{"prompt_tokens":' + b"9" * 5000 + b"}}\n\n"),
    "counts that are none": sent(A, end(), {"choices": [], "usage": {"prompt_tokens": True, "completion_tokens": []}}),
    "a number that is none": sent(b'data: {"choices":[{"delta":{"content":"a"},"logprobs":NaN}]}\n\n', end()),
    "choices as an object": sent({"choices": {"delta": {"content": "x"}}}, A, end()),
    "choices as texts": sent({"choices": ["x"]}, A, end()),
    "choices in choices": sent({"choices": [[]]}, A, end()),
    "a delta as text": sent({"choices": [{"delta": "x"}]}, A, end()),
    "a delta as a list": sent({"choices": [{"delta": ["x"]}]}, A, end()),
    "calls that are none": sent(chunk(content="a", tool_calls=[None]), end()),
    "a key twice": sent(b'data: {"choices":[{"delta":{"content":"x","content":"a"}}]}\n\n', end()),
    "words after the mark": sent(A, end(), DONE, chunk(content="x")),
    "a byte order mark": raw(b"\xef\xbb\xbf" + sse_event(A), sse_event(end()), DONE),
    "other fields": raw(b"id: 1\nretry: 5\nevent: x\n" + sse_event(A), sse_event(end()), DONE),
}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("odd", WORDS)
async def test_words_in_odd_streams(client, odd, dialect):
    async with ScriptedModelServer(WORDS[odd]) as server:
        chunks = await collect(apply_dialect(client(server), dialect))
    assert (words(chunks), chunks[-1]) == ("a", ReplyFinished("stop"))


CALLS = {
    "index as text": [called(index="0")],
    "index null": [called(index=None)],
    "index as a fraction": [called(index=0.0)],
    "index below zero": [called(index=-1)],
    "arguments as an object": [called(function={"name": "read", "arguments": {"path": "a"}})],
    "no function at first": [called(function=None), chunk(tool_calls=[{"index": 0, "function": CALL["function"]}])],
    "an id that changes": [
        called(function={"name": "read", "arguments": '{"pa'}),
        chunk(tool_calls=[{"index": 0, "id": "other", "function": {"arguments": 'th":"a"}'}}]),
    ],
    "the old kind": [chunk(function_call={"name": "read"}), chunk(function_call={"arguments": '{"path":"a"}'})],
}


@pytest.mark.parametrize("odd", CALLS)
async def test_calls_in_odd_streams(client, odd):
    async with ScriptedModelServer(sent(*CALLS[odd], end("tool_calls"), DONE)) as server:
        chunks = await collect(client(server))
    assert [(call.tool, call.arguments) for call in only(chunks, CallChunk)] == [("read", '{"path":"a"}')]
    assert chunks[-1] == ReplyFinished("calls")


FAULTS = {
    "words for an error": (sent(A, b"event: error\ndata: upstream died\n\n"), "cut", "saying: upstream died"),
    "a number for an error": (sent({"error": {"message": "x", "code": "429"}}), "rate_limited", r"\(429\): x"),
    "an error in a list": (raw(b'[{"error":{"message":"bad","code":400}}]'), "bad_request", "bad"),
    "a list for a reply": (raw(b"[]"), "malformed", "no object"),
    "depth": (sent(A, b'data: {"choices":' + b"[" * 100_000 + b"\n\n"), "malformed", "too deeply"),
    "nothing but the mark": (sent(DONE), "cut", "broke off"),
    "blank lines": (raw(b" \n\n \n"), "cut", "broke off"),
}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("fault", FAULTS)
async def test_what_cannot_be_understood_is_a_typed_error(client, fault, dialect):
    reply, code, said = FAULTS[fault]
    async with ScriptedModelServer(reply) as server:
        with pytest.raises(BackendError, match=said) as caught:
            await collect(apply_dialect(client(server, attempts=1), dialect))
    assert caught.value.fault.code == code


START = {"type": "message_start", "message": {"usage": {"input_tokens": 5}}}
STOP = {"type": "message_stop"}
SAID = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"}}
USE = {"type": "tool_use", "id": "t", "name": "read", "input": {}}


def over(reason="end_turn", usage=None):
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage or {"output_tokens": 3}}


def block(content, index=0):
    return {"type": "content_block_start", "index": index, "content_block": content}


def piece(text, index=0):
    return {"type": "content_block_delta", "index": index, "delta": {"type": "input_json_delta", "partial_json": text}}


SEARCH = [block({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}, 1), piece('{"q":1}', 1)]
ANTHROPIC_WORDS = {
    "no place": [START, SAID | {"index": None}, over(), STOP],
    "a place as text": [START, SAID | {"index": "0"}, over(), STOP],
    "no kind": [START, {"type": None}, {"x": 1}, SAID, over(), STOP],
    "a delta as text": [START, SAID | {"delta": "x"}, SAID, over(), STOP],
    "no delta": [START, SAID | {"delta": None}, SAID, over(), STOP],
    "null": [START, b"data: null\n\n", SAID, over(), STOP],
    "an empty list": [START, b"data: []\n\n", SAID, over(), STOP],
    "words": [START, b"data: ok\n\n", SAID, over(), STOP],
    "the other API's mark": [START, SAID, b"data: [DONE]\n\n"],
    "junk after the end": [START, SAID, over(), b"data: {broken\n\n", STOP],
    "a tool of the server's own": [START, SAID, *SEARCH, over(), STOP],
    "an error that is none": [START, SAID | {"error": ""}, over(), STOP],
    "no beginning": [SAID, over(), STOP],
    "no end": [START, SAID, over()],
}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("odd", ANTHROPIC_WORDS)
async def test_words_in_odd_streams_of_the_other_api(client, odd, dialect):
    async with ScriptedModelServer(sent(*ANTHROPIC_WORDS[odd])) as server:
        chunks = await collect(apply_dialect(client(server, "anthropic"), dialect))
    assert (words(chunks), chunks[-1], only(chunks, CallChunk)) == ("a", ReplyFinished("stop"), [])


ANTHROPIC_CALLS = {
    "whole, then in pieces": [block(USE | {"input": {"path": "a"}}), piece('{"path":'), piece('"a"}')],
    "whole": [block(USE | {"input": {"path": "a"}})],
    "as text": [block(USE | {"input": '{"path":"a"}'})],
    "a piece that is an object": [block(USE), piece({"path": "a"})],
    "no places": [{"type": "content_block_start", "content_block": USE}, piece('{"path":"a"}') | {"index": None}],
}


@pytest.mark.parametrize("odd", ANTHROPIC_CALLS)
async def test_calls_in_odd_streams_of_the_other_api(client, odd):
    async with ScriptedModelServer(sent(START, *ANTHROPIC_CALLS[odd], over("tool_use"), STOP)) as server:
        chunks = await collect(client(server, "anthropic"))
    assert [(call.tool, call.arguments) for call in only(chunks, CallChunk)] == [("read", '{"path":"a"}')]


async def test_counts_that_are_none_in_the_other_api(client):
    reply = sent(START, SAID, over(usage={"output_tokens": True, "input_tokens": "7"}), STOP)
    async with ScriptedModelServer(reply) as server:
        assert only(await collect(client(server, "anthropic")), Usage) == [Usage(7, 0, 0)]


async def test_a_whole_reply_of_plain_text_in_the_other_api(client):
    async with ScriptedModelServer(raw(line({"content": "a", "stop_reason": "end_turn"}))) as server:
        assert words(await collect(client(server, "anthropic"))) == "a"


@pytest.mark.parametrize("reply", [sent(A, end()), raw(line({"choices": [{"message": {"content": "a"}}]}))])
async def test_the_wrong_api_is_named(client, reply):
    async with ScriptedModelServer(reply) as server:
        with pytest.raises(BackendError, match="set the profile's apiKind to openai"):
            await collect(client(server, "anthropic"))
