"""The Anthropic messages API over real HTTP: roles, signatures, cache marks, and replies of every shape."""

import json
from itertools import pairwise

import pytest
from model_helpers import BASH, READ, collect, make_request, of_type, text_of, thoughts_of

from ostler.core.errors import BackendError
from ostler.core.message import CallPart, Message, ThoughtPart
from ostler.core.prompt import ImageContent, TextContent
from ostler.core.tools import ToolCall, ToolResult
from ostler.models.anthropic_request import add_cache_marks, alternating_messages
from ostler.models.model_types import (
    AssistantMessage,
    CallChunk,
    ModelRequest,
    ReplyFinished,
    RetryScheduled,
    SystemMessage,
    TextChunk,
    ThoughtChunk,
    ToolResultsMessage,
    Usage,
    UserMessage,
)
from ostler.testing.model_server import ScriptedModelServer, ScriptedToolCall, calls, html, raw, sse_event, status, text

MARK = {"type": "ephemeral"}
IMAGE = ImageContent("image/png", "aWNl")
HI = UserMessage((TextContent("hi"),))
CALLED = AssistantMessage(
    Message(
        "m1",
        (ThoughtPart("hm", "sig"), TextContent("look"), CallPart(ToolCall("c:1", "read", {"path": "a"}))),
        model="m",
    )
)
RESULT = ToolResultsMessage((ToolResult("c:1", "ok", "content"),))


def blocks(*history, model="m"):
    return alternating_messages(ModelRequest("", history), model)


async def run(client, *replies, request=None, **values):
    async with ScriptedModelServer(*replies) as server:
        chunks = await collect(client(server, "anthropic", **values), request)
    return chunks, server


def event_stream(*items):
    return raw(*(sse_event(item, item["type"]) for item in items))


START = {"type": "message_start", "message": {"usage": {"input_tokens": 3, "output_tokens": 1}}}
END = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}}
STOP = {"type": "message_stop"}


def text_delta(content, index=0):
    return {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": content}}


@pytest.mark.req("MD-1", "MD-4")
@pytest.mark.parametrize("write_size", [0, 1])
async def test_text_and_thoughts(client, write_size):
    reply = text("Grüße 🐎", chunks=4, thought="hm, so").with_usage(20, 9, 4).with_write_size(write_size)
    chunks, server = await run(client, reply)
    assert (text_of(chunks), thoughts_of(chunks)) == ("Grüße 🐎", "hm, so")
    assert [chunk.signature for chunk in of_type(chunks, ThoughtChunk) if chunk.signature] == ["signed"]
    assert chunks[-2:] == [Usage(20, 9, 4), ReplyFinished("stop")]
    (request,) = server.requests
    assert request.path == "/v1/messages"
    assert request.headers["x-api-key"] == "sk-test-1234"
    assert request.headers["anthropic-version"] == "2023-06-01"
    assert "authorization" not in request.headers


@pytest.mark.req("MD-4")
@pytest.mark.parametrize("plain_json", [False, True])
async def test_calls(client, plain_json):
    reply = calls([("read", {"path": "ä"}), ScriptedToolCall("bash", {}, "toolu_7")], text="look")
    chunks, _ = await run(client, reply.as_json() if plain_json else reply)
    first, second = of_type(chunks, CallChunk)
    assert (first.id, first.tool, json.loads(first.arguments)) == ("call_1_0", "read", {"path": "ä"})
    assert second == CallChunk("toolu_7", "bash", "{}")
    assert (text_of(chunks), chunks[-1]) == ("look", ReplyFinished("calls"))


async def test_json_instead_of_a_stream(client):
    chunks, _ = await run(client, text("a", thought="b").as_json())
    assert chunks == [ThoughtChunk("b", "signed"), TextChunk("a"), Usage(10, 5, 0), ReplyFinished("stop")]


@pytest.mark.parametrize(
    ("reason", "finished"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "refusal"),
        ("pause_turn", "other"),
    ],
)
async def test_finish_reasons(client, reason, finished):
    chunks, _ = await run(client, text("a").with_finish_reason(reason))
    assert chunks[-1] == ReplyFinished(finished, reason if finished == "other" else "")


async def test_redacted_thoughts_are_sent_back(client):
    redacted = {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "redacted_thinking", "data": "xyz"},
    }
    chunks, _ = await run(
        client, event_stream(START, redacted, {"type": "content_block_stop", "index": 0}, text_delta("a", 1), END, STOP)
    )
    (thought,) = of_type(chunks, ThoughtChunk)
    messages = blocks(
        HI, AssistantMessage(Message("m", (ThoughtPart(thought.text, thought.signature), TextContent("a"))))
    )
    assert messages[1]["content"][0] == {"type": "redacted_thinking", "data": "xyz"}


@pytest.mark.req("MD-4")
@pytest.mark.parametrize(
    "reply",
    [
        event_stream(START, text_delta("abc"), END),
        event_stream(START, text_delta("a"), {"type": "ping"}, text_delta("bc"), END, STOP),
        event_stream(START, text_delta("abc"), {"type": "from the future", "index": 3, "x": [1]}, END, STOP),
        event_stream(
            START, {"type": "content_block_start", "index": "0", "content_block": {"type": "text", "text": "abc"}}, END
        ),
        event_stream(text_delta("abc"), STOP),
        event_stream(START, text_delta("abc"), END, STOP).stall_after(3),
        event_stream(START, text_delta("abc"), END, STOP).stall_after(4),
    ],
)
async def test_incomplete_streams_are_accepted(client, reply):
    chunks, _ = await run(client, reply)
    assert (text_of(chunks), chunks[-1]) == ("abc", ReplyFinished("stop"))


@pytest.mark.req("MD-5")
@pytest.mark.parametrize(
    "fault",
    [
        status(529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
        event_stream(START, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
        event_stream(START, {"type": "error", "error": {"type": "api_error", "message": "oops"}}),
        event_stream(START),
        event_stream(START, {"type": "ping"}, STOP),
    ],
)
async def test_failures_before_any_text_are_retried(client, fault):
    chunks, _ = await run(client, fault, text("hello"))
    assert text_of(chunks) == "hello"
    assert [retry.attempt for retry in of_type(chunks, RetryScheduled)] == [2]


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (html(), "wrong_url"),
        (status(401, {"type": "error", "error": {"type": "authentication_error", "message": "x"}}), "key_refused"),
        (status(400, {"type": "error", "error": {"message": "prompt is too long: 9 tokens > 8"}}), "context_length"),
        (status(400, {"type": "error", "error": {"message": "Your credit balance is too low"}}), "quota"),
        (raw(b"data: {broken\n\n"), "malformed"),
        (raw(b"data: " + b'{"usage":' * 100_000 + b"\n\n"), "malformed"),
        (raw(b"{broken"), "malformed"),
        (raw(b'{"some": "json"}'), "bad_request"),
        (raw(b"[1]"), "bad_request"),
        (event_stream(text_delta("abc"), {"type": "error", "error": {"type": "overloaded_error"}}), "cut"),
        (event_stream(text_delta("abc")), "cut"),
    ],
)
async def test_error_codes(client, reply, code):
    async with ScriptedModelServer(reply) as server:
        with pytest.raises(BackendError) as caught:
            await collect(client(server, "anthropic"))
    assert caught.value.fault.code == code


async def test_output_limit_is_lowered_to_the_models_maximum(client):
    rejection = status(400, {"error": {"message": "max_tokens: 20000 > 8192, which is the maximum"}})
    _, server = await run(client, rejection, text("a"))
    assert [request.json["max_tokens"] for request in server.requests] == [20_000, 8192]


@pytest.mark.req("MD-9")
async def test_cache_marks_and_request_fields(client):
    history = (
        HI,
        CALLED,
        RESULT,
        AssistantMessage(Message("m2", (TextContent("done"),))),
        UserMessage((TextContent("more"),)),
    )
    request = ModelRequest("be brief", history, (READ, BASH), max_tokens=50, temperature=0.5)
    _, server = await run(client, text("a"), request=request)
    sent = server.requests[0].json
    assert (sent["max_tokens"], sent["temperature"], sent["stream"]) == (50, 0.5, True)
    assert sent["system"] == [{"type": "text", "text": "be brief", "cache_control": MARK}]
    assert [tool.get("cache_control") for tool in sent["tools"]] == [None, MARK]
    assert sent["tools"][0]["input_schema"] == READ.schema
    marks = [[block.get("cache_control") for block in message["content"]] for message in sent["messages"]]
    assert marks == [[None], [None, None, None], [MARK], [None], [MARK]]
    assert json.dumps(sent).count("cache_control") == 4


@pytest.mark.req("MD-9")
def test_request_without_marks_is_a_prefix_of_the_next():
    history = [
        HI,
        CALLED,
        RESULT,
        AssistantMessage(Message("m2", (TextContent("done"),))),
        SystemMessage("n"),
        UserMessage((TextContent("x"),)),
    ]
    sizes = [1, 3, 6]
    bodies = [json.dumps(alternating_messages(ModelRequest("", tuple(history[:size])), "m")) for size in sizes]
    for shorter, longer in pairwise(bodies):
        assert longer.startswith(shorter.removesuffix("]"))


def test_temperature_is_omitted_with_thinking():
    from ostler.models.anthropic_request import messages_body

    sent = json.loads(
        messages_body("m", make_request(temperature=0.5), 9, {"thinking": {"type": "enabled", "budget_tokens": 5}})
    )
    assert "temperature" not in sent
    assert sent["thinking"]["budget_tokens"] == 5


class TestMessages:
    def test_call_and_result(self):
        assert blocks(HI, CALLED, RESULT)[1:] == [
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "sig"},
                    {"type": "text", "text": "look"},
                    {"type": "tool_use", "id": "c_1", "name": "read", "input": {"path": "a"}},
                ],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c_1", "content": "content"}]},
        ]

    def test_system_notes_precede_user_text_and_roles_alternate(self):
        messages = blocks(
            HI,
            CALLED,
            RESULT,
            SystemMessage("note"),
            UserMessage((TextContent("a"), IMAGE)),
            UserMessage((TextContent("b"),)),
        )
        assert [message["role"] for message in messages] == ["user", "assistant", "user"]
        kinds = [block["type"] for block in messages[-1]["content"]]
        assert kinds == ["tool_result", "text", "text", "image", "text"]
        assert messages[-1]["content"][1]["text"] == "<system>\nnote\n</system>"

    def test_results_with_images_and_failures(self):
        results = (
            ToolResult("a", "failed", "no"),
            ToolResult("b", "ok", "see", images=(IMAGE,)),
            ToolResult("c", "ok", ""),
        )
        first, second, third = blocks(HI, CALLED, ToolResultsMessage(results))[-1]["content"]
        assert first["is_error"] is True
        assert [block["type"] for block in second["content"]] == ["text", "image"]
        assert third == {"type": "tool_result", "tool_use_id": "c"}

    def test_thoughts_of_other_models_or_without_signature_are_not_sent(self):
        thought = Message("m", (ThoughtPart("x", "sig"), TextContent("a")), model="other")
        unsigned = Message("m", (ThoughtPart("x"), TextContent("b")), model="m")
        messages = blocks(HI, AssistantMessage(thought), HI, AssistantMessage(unsigned))
        assert [len(message["content"]) for message in messages] == [1, 1, 1, 1]

    def test_empty_content_is_omitted_and_the_user_starts(self):
        messages = blocks(
            AssistantMessage(Message("m", (TextContent(" \n"),))), CALLED, UserMessage((TextContent(""),)), HI
        )
        assert [message["role"] for message in messages] == ["user", "assistant", "user"]
        assert messages[0]["content"][0]["text"]
        assert add_cache_marks(blocks()) != []
