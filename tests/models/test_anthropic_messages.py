"""The Anthropic messages API over real HTTP: turns, seals, cache marks, and replies in every shape."""

import json
from itertools import pairwise

import pytest
from model_talk import BASH, READ, ask, collect, only, thoughts, words

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
PICTURE = ImageContent("image/png", "aWNl")
HI = UserMessage((TextContent("hi"),))
CALLED = AssistantMessage(
    Message(
        "m1",
        (ThoughtPart("hm", "seal"), TextContent("look"), CallPart(ToolCall("c:1", "read", {"path": "a"}))),
        model="m",
    )
)
RESULT = ToolResultsMessage((ToolResult("c:1", "ok", "content"),))


def blocks(*history, model="m"):
    return alternating_messages(ModelRequest("", history), model)


async def play(client, *replies, request=None, **values):
    async with ScriptedModelServer(*replies) as server:
        chunks = await collect(client(server, "anthropic", **values), request)
    return chunks, server


def told(*items):
    return raw(*(sse_event(item, item["type"]) for item in items))


START = {"type": "message_start", "message": {"usage": {"input_tokens": 3, "output_tokens": 1}}}
END = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}}
STOP = {"type": "message_stop"}


def say(said, index=0):
    return {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": said}}


@pytest.mark.req("MD-1", "MD-4")
@pytest.mark.parametrize("write_size", [0, 1])
async def test_words_and_thoughts(client, write_size):
    reply = text("Grüße 🐎", chunks=4, thought="hm, so").with_usage(20, 9, 4).with_write_size(write_size)
    chunks, server = await play(client, reply)
    assert (words(chunks), thoughts(chunks)) == ("Grüße 🐎", "hm, so")
    assert [chunk.signature for chunk in only(chunks, ThoughtChunk) if chunk.signature] == ["sealed"]
    assert chunks[-2:] == [Usage(20, 9, 4), ReplyFinished("stop")]
    (request,) = server.requests
    assert request.path == "/v1/messages"
    assert request.headers["x-api-key"] == "sk-test-1234"
    assert request.headers["anthropic-version"] == "2023-06-01"
    assert "authorization" not in request.headers


@pytest.mark.req("MD-4")
@pytest.mark.parametrize("whole", [False, True])
async def test_calls(client, whole):
    wanted = calls([("read", {"path": "ä"}), ScriptedToolCall("bash", {}, "toolu_7")], text="look")
    chunks, _ = await play(client, wanted.as_json() if whole else wanted)
    first, second = only(chunks, CallChunk)
    assert (first.id, first.tool, json.loads(first.arguments)) == ("call_1_0", "read", {"path": "ä"})
    assert second == CallChunk("toolu_7", "bash", "{}")
    assert (words(chunks), chunks[-1]) == ("look", ReplyFinished("calls"))


async def test_json_in_place_of_a_stream(client):
    chunks, _ = await play(client, text("a", thought="b").as_json())
    assert chunks == [ThoughtChunk("b", "sealed"), TextChunk("a"), Usage(10, 5, 0), ReplyFinished("stop")]


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
async def test_reasons(client, reason, finished):
    chunks, _ = await play(client, text("a").with_finish_reason(reason))
    assert chunks[-1] == ReplyFinished(finished, reason if finished == "other" else "")


async def test_thoughts_that_may_not_be_read_keep_their_seal(client):
    hidden = {"type": "content_block_start", "index": 0, "content_block": {"type": "redacted_thinking", "data": "xyz"}}
    chunks, _ = await play(
        client, told(START, hidden, {"type": "content_block_stop", "index": 0}, say("a", 1), END, STOP)
    )
    (thought,) = only(chunks, ThoughtChunk)
    back = blocks(HI, AssistantMessage(Message("m", (ThoughtPart(thought.text, thought.signature), TextContent("a")))))
    assert back[1]["content"][0] == {"type": "redacted_thinking", "data": "xyz"}


@pytest.mark.req("MD-4")
@pytest.mark.parametrize(
    "reply",
    [
        told(START, say("abc"), END),
        told(START, say("a"), {"type": "ping"}, say("bc"), END, STOP),
        told(START, say("abc"), {"type": "from the future", "index": 3, "x": [1]}, END, STOP),
        told(
            START, {"type": "content_block_start", "index": "0", "content_block": {"type": "text", "text": "abc"}}, END
        ),
        told(say("abc"), STOP),
        told(START, say("abc"), END, STOP).stall_after(3),
        told(START, say("abc"), END, STOP).stall_after(4),
    ],
)
async def test_streams_that_are_good_enough(client, reply):
    chunks, _ = await play(client, reply)
    assert (words(chunks), chunks[-1]) == ("abc", ReplyFinished("stop"))


@pytest.mark.req("MD-5")
@pytest.mark.parametrize(
    "fault",
    [
        status(529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
        told(START, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
        told(START, {"type": "error", "error": {"type": "api_error", "message": "oops"}}),
        told(START),
        told(START, {"type": "ping"}, STOP),
    ],
)
async def test_faults_before_any_words_are_asked_again(client, fault):
    chunks, _ = await play(client, fault, text("hello"))
    assert words(chunks) == "hello"
    assert [waiting.attempt for waiting in only(chunks, RetryScheduled)] == [2]


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
        (told(say("abc"), {"type": "error", "error": {"type": "overloaded_error"}}), "cut"),
        (told(say("abc")), "cut"),
    ],
)
async def test_failures(client, reply, code):
    async with ScriptedModelServer(reply) as server:
        with pytest.raises(BackendError) as caught:
            await collect(client(server, "anthropic"))
    assert caught.value.fault.code == code


async def test_a_limit_above_the_models_own_is_lowered(client):
    refusal = status(400, {"error": {"message": "max_tokens: 20000 > 8192, which is the maximum"}})
    _, server = await play(client, refusal, text("a"))
    assert [request.json["max_tokens"] for request in server.requests] == [20_000, 8192]


@pytest.mark.req("MD-9")
async def test_cache_marks_and_the_shape_of_a_request(client):
    history = (
        HI,
        CALLED,
        RESULT,
        AssistantMessage(Message("m2", (TextContent("done"),))),
        UserMessage((TextContent("more"),)),
    )
    request = ModelRequest("be brief", history, (READ, BASH), max_tokens=50, temperature=0.5)
    _, server = await play(client, text("a"), request=request)
    sent = server.requests[0].json
    assert (sent["max_tokens"], sent["temperature"], sent["stream"]) == (50, 0.5, True)
    assert sent["system"] == [{"type": "text", "text": "be brief", "cache_control": MARK}]
    assert [tool.get("cache_control") for tool in sent["tools"]] == [None, MARK]
    assert sent["tools"][0]["input_schema"] == READ.schema
    marks = [[block.get("cache_control") for block in message["content"]] for message in sent["messages"]]
    assert marks == [[None], [None, None, None], [MARK], [None], [MARK]]
    assert json.dumps(sent).count("cache_control") == 4


@pytest.mark.req("MD-9")
def test_but_for_the_marks_each_request_begins_with_the_one_before():
    history = [
        HI,
        CALLED,
        RESULT,
        AssistantMessage(Message("m2", (TextContent("done"),))),
        SystemMessage("n"),
        UserMessage((TextContent("x"),)),
    ]
    sizes = [1, 3, 6]
    grown = [json.dumps(alternating_messages(ModelRequest("", tuple(history[:size])), "m")) for size in sizes]
    for shorter, longer in pairwise(grown):
        assert longer.startswith(shorter.removesuffix("]"))


def test_thinking_leaves_out_what_the_api_would_refuse_with_it():
    from ostler.models.anthropic_request import messages_body

    sent = json.loads(
        messages_body("m", ask(temperature=0.5), 9, {"thinking": {"type": "enabled", "budget_tokens": 5}})
    )
    assert "temperature" not in sent
    assert sent["thinking"]["budget_tokens"] == 5


class TestTurns:
    def test_a_call_and_its_result(self):
        assert blocks(HI, CALLED, RESULT)[1:] == [
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "seal"},
                    {"type": "text", "text": "look"},
                    {"type": "tool_use", "id": "c_1", "name": "read", "input": {"path": "a"}},
                ],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c_1", "content": "content"}]},
        ]

    def test_notes_stand_ahead_of_the_users_words_and_roles_take_turns(self):
        said = blocks(
            HI,
            CALLED,
            RESULT,
            SystemMessage("note"),
            UserMessage((TextContent("a"), PICTURE)),
            UserMessage((TextContent("b"),)),
        )
        assert [message["role"] for message in said] == ["user", "assistant", "user"]
        kinds = [block["type"] for block in said[-1]["content"]]
        assert kinds == ["tool_result", "text", "text", "image", "text"]
        assert said[-1]["content"][1]["text"] == "<system>\nnote\n</system>"

    def test_results_with_pictures_and_failures(self):
        results = (
            ToolResult("a", "failed", "no"),
            ToolResult("b", "ok", "see", images=(PICTURE,)),
            ToolResult("c", "ok", ""),
        )
        first, second, third = blocks(HI, CALLED, ToolResultsMessage(results))[-1]["content"]
        assert first["is_error"] is True
        assert [block["type"] for block in second["content"]] == ["text", "image"]
        assert third == {"type": "tool_result", "tool_use_id": "c"}

    def test_thoughts_of_others_and_without_seal_stay_here(self):
        thought = Message("m", (ThoughtPart("x", "seal"), TextContent("a")), model="other")
        unsealed = Message("m", (ThoughtPart("x"), TextContent("b")), model="m")
        said = blocks(HI, AssistantMessage(thought), HI, AssistantMessage(unsealed))
        assert [len(message["content"]) for message in said] == [1, 1, 1, 1]

    def test_what_is_empty_is_left_out_and_the_user_begins(self):
        said = blocks(
            AssistantMessage(Message("m", (TextContent(" \n"),))), CALLED, UserMessage((TextContent(""),)), HI
        )
        assert [message["role"] for message in said] == ["user", "assistant", "user"]
        assert said[0]["content"][0]["text"]
        assert add_cache_marks(blocks()) != []
