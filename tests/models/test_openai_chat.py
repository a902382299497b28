"""Replies of OpenAI-compatible servers over real HTTP, in every shape."""

import json
import logging
import tracemalloc

import pytest
from model_helpers import collect, make_request, of_type, text_of, thoughts_of

from ostler.core.errors import BackendError
from ostler.core.message import Message
from ostler.core.prompt import TextContent
from ostler.models.model_settings import ModelSettings
from ostler.models.model_types import (
    AssistantMessage,
    CallChunk,
    ModelRequest,
    ReplyFinished,
    SystemMessage,
    TextChunk,
    ThoughtChunk,
    Usage,
    UserMessage,
)
from ostler.testing.model_server import (
    ScriptedModelServer,
    ScriptedToolCall,
    calls,
    html,
    raw,
    sse_event,
    sse_reply,
    status,
    text,
)

STOP = {"choices": [{"delta": {}, "finish_reason": "stop"}]}


def delta(**fields):
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": None}]}


def call_delta(**fields):
    return delta(tool_calls=[fields])


async def run(client, *replies, request=None, **values):
    async with ScriptedModelServer(*replies) as server:
        return await collect(client(server, **values), request)


async def run_failing(client, *replies, into=None, **values):
    async with ScriptedModelServer(*replies) as server:
        with pytest.raises(BackendError) as caught:
            await collect(client(server, **values), into=into)
    return caught.value


def choices(*texts, **fields):
    """Return an event with one choice for each text."""
    return {"choices": [{"delta": {"content": text}, **fields} for text in texts]}


@pytest.mark.req("MD-1")
@pytest.mark.parametrize(
    "reply",
    [
        sse_reply(delta(content="one"), {"choices": [{"index": 1, "delta": {"content": "two"}}]}, STOP),
        sse_reply(choices("one", "two"), STOP),
        sse_reply(choices("one", index="0"), choices("two", index="1"), STOP),
        sse_reply(
            delta(content="one"),
            {"choices": [{"index": 1, "delta": {"tool_calls": [{"function": {"name": "bash", "arguments": "{}"}}]}}]},
            {"choices": [{"index": 1, "delta": {}, "finish_reason": "tool_calls"}]},
            STOP,
        ),
        raw(
            json.dumps(
                {
                    "choices": [
                        {"index": 0, "message": {"content": "one"}, "finish_reason": "stop"},
                        {"index": 1, "message": {"content": "two"}, "finish_reason": "length"},
                    ]
                }
            ).encode(),
            content_type="application/json",
        ),
    ],
)
async def test_a_second_choice_is_not_mixed_in(client, reply):
    chunks = await run(client, reply)
    assert text_of(chunks) == "one"
    assert of_type(chunks, CallChunk) == []
    assert chunks[-1] == ReplyFinished("stop")


@pytest.mark.req("MD-1")
async def test_a_reply_of_endless_calls_is_refused_early(client):
    def many(start):
        tools = [{"index": start + i, "id": f"c{start + i}", "function": {"name": "read"}} for i in range(500)]
        return delta(tool_calls=tools)

    tracemalloc.start()
    error = await run_failing(client, sse_reply(*(many(500 * i) for i in range(60)), STOP))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "too long" in str(error)
    assert peak < 100_000_000


@pytest.mark.req("MD-1", "MD-4")
@pytest.mark.parametrize("framing", ["chunked", "length", "close"])
@pytest.mark.parametrize("write_size", [0, 1, 13])
async def test_text_arrives_complete(client, framing, write_size):
    content = "Grüße, 世界 🐎\u2028 and\u0085 more"
    reply = (
        text(content, chunks=7, thought="hmm, ja")
        .with_usage(20, 9, 4)
        .with_framing(framing)
        .with_write_size(write_size)
    )
    chunks = await run(client, reply)
    assert text_of(chunks) == content
    assert thoughts_of(chunks) == "hmm, ja"
    assert chunks[-2:] == [Usage(20, 9, 4), ReplyFinished("stop")]


@pytest.mark.req("DX-6")
async def test_one_socket_read_is_one_chunk(client):
    events = b"".join(sse_event(delta(content="abcd")) for _ in range(100)) + sse_event(STOP)
    chunks = await run(client, raw(events, b"data: [DONE]\n\n").with_framing("length"))
    assert text_of(chunks) == "abcd" * 100
    assert len(of_type(chunks, TextChunk)) <= 2


@pytest.mark.req("MD-4")
@pytest.mark.parametrize("plain_json", [False, True])
async def test_calls_arrive_complete(client, plain_json):
    reply = calls(
        [("read", {"path": "ä.txt"}), ScriptedToolCall("bash", {"command": "ls"}, "id-7")], text="let me look"
    )
    chunks = await run(client, reply.as_json() if plain_json else reply)
    assert text_of(chunks) == "let me look"
    first, second = of_type(chunks, CallChunk)
    assert (first.id, first.tool, json.loads(first.arguments)) == ("call_1_0", "read", {"path": "ä.txt"})
    assert (second.id, second.tool, json.loads(second.arguments)) == ("id-7", "bash", {"command": "ls"})
    assert chunks[-1] == ReplyFinished("calls")


@pytest.mark.req("MD-4")
async def test_json_instead_of_a_stream(client):
    chunks = await run(client, text("hello", thought="so").as_json())
    assert chunks == [ThoughtChunk("so"), TextChunk("hello"), Usage(10, 5, 0), ReplyFinished("stop")]


@pytest.mark.req("MD-4")
@pytest.mark.parametrize(
    ("content", "answer", "thought"),
    [
        ("plain", "plain", ""),
        (["a", {"type": "text", "text": "b"}, {"type": "text", "text": {"value": "c"}}], "abc", ""),
        ({"text": "from an object"}, "from an object", ""),
        ({"odd": [1, 2]}, '{"odd":[1,2]}', ""),
        (42, "42", ""),
        (True, "true", ""),
        ([], "", ""),
        (None, "", ""),
        ([{"type": "thinking", "thinking": [{"type": "text", "text": "deep"}]}, {"text": "out"}], "out", "deep"),
    ],
)
async def test_content_in_any_shape(client, content, answer, thought):
    chunks = await run(client, sse_reply(delta(content="<"), delta(content=content), STOP))
    assert (text_of(chunks), thoughts_of(chunks)) == ("<" + answer, thought)


@pytest.mark.req("MD-4")
@pytest.mark.parametrize(
    "deltas",
    [
        [delta(reasoning_content="why"), delta(content="so")],
        [delta(reasoning="why"), delta(content="so")],
        [delta(reasoning_content="w", content=""), delta(reasoning_content="hy", content=None), delta(content="so")],
        [delta(reasoning_content="why", content="so")],
        [delta(reasoning=["w", {"text": "hy"}]), delta(content="so")],
        [delta(content="<think>why</think>so")],
        [delta(content=part) for part in ("<th", "ink>w", "hy</", "think>", "\n\nso")],
        [{"choices": [{"message": {"role": "assistant", "reasoning": "why", "content": "so"}}]}],
    ],
)
async def test_reasoning_is_separated(client, deltas):
    chunks = await run(client, sse_reply(*deltas, STOP))
    assert (thoughts_of(chunks), text_of(chunks)) == ("why", "so")


ARGUMENTS = '{"path":"a"}'
COMPLETE_CALL = {"id": "x", "function": {"name": "read", "arguments": ARGUMENTS}}


@pytest.mark.req("MD-4")
@pytest.mark.parametrize(
    "deltas",
    [
        [call_delta(index=0, id="x", function={"name": "read", "arguments": {"path": "a"}})],
        [
            call_delta(index="0", id="x", function={"name": "re"}),
            call_delta(index="0", function={"name": "ad", "arguments": ARGUMENTS}),
        ],
        [
            call_delta(index=0, id="x", function={"name": "read"}),
            call_delta(index=0, function={"arguments": '{"path":'}),
            call_delta(index=0, id=None, function={"name": None, "arguments": '"a"}'}),
        ],
        [call_delta(id="x", name="read", arguments=ARGUMENTS)],
        [call_delta(id="x", name="read", input={"path": "a"})],
        [delta(tool_calls=COMPLETE_CALL)],
        [{"choices": [{"message": {"tool_calls": [COMPLETE_CALL]}}]}],
        [{"choices": [{"delta": {"content": ""}}, {"delta": {"tool_calls": [COMPLETE_CALL]}}]}],
    ],
)
async def test_calls_in_any_shape(client, deltas):
    chunks = await run(client, sse_reply(*deltas, {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}))
    (call,) = of_type(chunks, CallChunk)
    assert (call.id, call.tool, json.loads(call.arguments)) == ("x", "read", {"path": "a"})


@pytest.mark.req("MD-4")
async def test_function_call_field_and_missing_ids(client):
    deltas = [delta(function_call={"name": "read", "arguments": "{"}), delta(function_call={"arguments": "}"})]
    end = {"choices": [{"delta": {}, "finish_reason": "function_call"}]}
    chunks = await run(client, sse_reply(*deltas, end))
    assert of_type(chunks, CallChunk) == [CallChunk("call_0", "read", "{}")]
    assert chunks[-1] == ReplyFinished("calls")


@pytest.mark.parametrize(
    ("reason", "finished"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("content_filter", "filtered"),
        ("tool_calls", "stop"),
        ("eos", "stop"),
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        ("SAFETY", "filtered"),
        ("something new", "other"),
    ],
)
async def test_finish_reasons(client, reason, finished):
    server_reason = reason if finished == "other" else ""
    assert (await run(client, text("a").with_finish_reason(reason)))[-1] == ReplyFinished(finished, server_reason)


async def test_reply_with_calls_has_reason_calls_unless_truncated(client):
    assert (await run(client, calls([("read", {})]).with_finish_reason("stop")))[-1] == ReplyFinished("calls")
    for reason in ("length", "content_filter"):
        finished = (await run(client, calls([("read", {})]).with_finish_reason(reason)))[-1]
        assert finished.reason in ("length", "filtered")


async def test_refusal(client):
    chunks = await run(client, sse_reply(delta(refusal="I "), delta(refusal="won't"), STOP))
    assert text_of(chunks) == "I won't"
    assert chunks[-1] == ReplyFinished("refusal")


@pytest.mark.req("MD-8")
@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 7, "completion_tokens": 3}, Usage(7, 3, 0)),
        ({"prompt_tokens": 7, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 5}}, Usage(7, 3, 5)),
        ({"prompt_tokens": 7, "completion_tokens": 3, "prompt_tokens_details": None}, Usage(7, 3, 0)),
        ({"prompt_tokens": 7, "completion_tokens": 3, "prompt_cache_hit_tokens": 4}, Usage(7, 3, 4)),
        ({"prompt_tokens": "7", "completion_tokens": 3.5}, Usage(7, 3, 0)),
        ({"prompt_tokens": "many", "completion_tokens": [3]}, None),
        ({"prompt_tokens": -1, "completion_tokens": 10**30}, None),
        ("odd", None),
    ],
)
@pytest.mark.parametrize("choices", [[], None, "omitted"])
async def test_usage_with_empty_choices(client, usage, expected, choices):
    frame = {"usage": usage} if choices == "omitted" else {"usage": usage, "choices": choices}
    chunks = await run(client, sse_reply(delta(content="a"), STOP, frame))
    assert of_type(chunks, Usage) == ([expected] if expected else [])


@pytest.mark.req("MD-4")
@pytest.mark.parametrize(
    "reply",
    [
        sse_reply(delta(content="abc"), STOP, done=False),
        sse_reply(delta(content="abc")),
        raw(sse_event(delta(content="abc")), sse_event(STOP).rstrip()),
        raw(sse_event(delta(content="abc")), b"data: [DONE]"),
        raw(b": hi\n\n", sse_event(delta(content="abc")), b": ping\n\n", sse_event(STOP)),
        raw(sse_event(delta(content="abc")).replace(b"\n", b"\r\n"), sse_event(STOP).replace(b"\n", b"\r")),
        raw(b"\n\n" + sse_event(delta(content="abc")) + sse_event(STOP)),
        raw(sse_event(delta(content="abc")), sse_event(STOP), b"data: [DONE]\n\n", sse_event(delta(content="late"))),
        raw(sse_event(delta(content="abc")), sse_event(""), sse_event(STOP)),
        raw(sse_event(json.dumps(delta(content="abc"), indent=1).replace("\n", "\ndata: ")), sse_event(STOP)),
        sse_reply(delta(content="abc"), STOP).cut_after(10_000),
        sse_reply(delta(content="abc"), STOP).stall_after(2),
        sse_reply(delta(content="abc"), STOP).stall_after(3),
    ],
)
async def test_incomplete_endings_are_accepted(client, reply):
    chunks = await run(client, reply)
    assert text_of(chunks) == "abc"
    assert chunks[-1] == ReplyFinished("stop")


@pytest.mark.req("MD-4")
async def test_surrogates_in_two_events(client):
    surrogates = ["a\ud83d", "\udc0eb", "\ud83d"]
    events = [sse_event(delta(content=surrogate)) for surrogate in surrogates]  # json.dumps escapes each surrogate
    chunks = await run(client, raw(*events, sse_event(STOP)))
    assert text_of(chunks) == "a🐎b"
    text_of(chunks).encode()


async def test_invalid_utf8_is_replaced(client):
    chunks = await run(client, raw(b'data: {"choices":[{"delta":{"content":"a\xffb"}}]}\n\n', sse_event(STOP)))
    assert text_of(chunks) == "a\ufffdb"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"data: {broken\n\n", "invalid JSON"),
        (b"data: " + b"[" * 200_000 + b"\n\n", "nested too deeply"),
        (b'data: {"choices":' + b"[" * 200_000 + b"]" * 200_000 + b"}\n\n", "nested too deeply"),
        (b'data: {"usage":{"a":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}}\n\n", "nested too deeply"),
        (b'data: {"choices":[],"usage":{"prompt_tokens":' + b"9" * 100_000 + b"}}\n\n", "invalid JSON"),
        (b"data: " + b"x" * (17 * 1024 * 1024), "too long"),
        (b"{" + b"x" * 100, "invalid JSON"),
        (b"{" + b"x" * (33 * 1024 * 1024), "too long"),
    ],
)
async def test_malformed_replies_are_typed_errors(client, body, message):
    error = await run_failing(client, raw(body))
    assert error.fault.code == "malformed"
    assert message in str(error)
    assert len(str(error)) < 400


async def test_text_before_an_invalid_event_is_returned(client):
    chunks = []
    error = await run_failing(client, raw(sse_event(delta(content="abc")) + b"data: {broken\n\n"), into=chunks)
    assert text_of(chunks) == "abc"
    assert error.fault.code == "malformed"


async def test_web_page_means_wrong_base_url(client):
    error = await run_failing(client, html())
    assert error.fault.code == "wrong_url"
    assert "base URL seems wrong" in str(error)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ({"message": "CUDA out of memory", "type": "server_error"}, "server_error"),
        ({"message": "maximum context length is 4096", "code": 400}, "context_length"),
        ({"message": "busy", "code": 429}, "rate_limited"),
        ({"message": "upstream died", "code": 502}, "server_error"),
        ("just text", "bad_request"),
    ],
)
async def test_error_inside_the_stream(client, error, code):
    failure = await run_failing(client, sse_reply({"error": error}), attempts=1)
    assert failure.fault.code == code


async def test_text_before_an_error_is_returned(client):
    chunks = []
    error = await run_failing(
        client, sse_reply(delta(content="abc"), {"error": {"message": "died", "code": 500}}), into=chunks
    )
    assert text_of(chunks) == "abc"
    assert error.fault.code == "cut"


@pytest.mark.req("MD-4")
@pytest.mark.parametrize(
    "empty", [{}, {"choices": None, "usage": None}, {"type": "ping"}, {"object": "chunk", "id": "x"}]
)
async def test_empty_event_is_skipped(client, empty):
    chunks = await run(client, sse_reply(empty, delta(content="a"), empty, STOP, empty))
    assert text_of(chunks) == "a"


@pytest.mark.parametrize("event", [{"object": "error", "message": "context length exceeded", "code": 400}])
async def test_event_that_is_an_error_object(client, event):
    assert (await run_failing(client, sse_reply(event))).fault.code == "context_length"


LONG = "This model's maximum context length is 4096 tokens."
QUOTA_EXCEEDED = {"code": "insufficient_quota", "message": "You exceeded your current quota"}
OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}


@pytest.mark.req("MD-5")
@pytest.mark.parametrize(
    ("reply", "code", "message"),
    [
        (status(401), "key_refused", "rejected the API key"),
        (status(403, {"error": {"message": "no access to this region"}}), "key_refused", "region"),
        (status(400, {"error": {"message": "no", "code": "context_length_exceeded"}}), "context_length", "no"),
        (status(400, {"object": "error", "message": LONG}), "context_length", "4096"),
        (status(400, {"error": {"type": "exceed_context_size_error", "message": "n_ctx"}}), "context_length", "n_ctx"),
        (status(413, {"error": "request exceeds context size"}), "context_length", ""),
        (status(400, {"detail": [{"loc": ["body"], "msg": "field required"}]}), "bad_request", "field required"),
        (status(422, "plain text"), "bad_request", "plain text"),
        (status(402, {"error": {"message": "pay"}}), "quota", "pay"),
        (status(429, {"error": QUOTA_EXCEEDED}), "quota", "quota"),
        (status(429, {"error": {"message": "free-models-per-day limit"}}), "quota", ""),
        (status(500), "server_error", "failed (500)"),
        (status(502, "<html><h1>Bad gateway</h1>"), "server_error", "failed (502)"),
        (status(503, "x" * 100_000), "server_error", "(503)"),
        (status(529, OVERLOADED), "server_error", "Overloaded"),
        (status(307, "", headers={"location": "https://else.example/v1"}), "wrong_url", "https://else.example/v1"),
        (status(418, {"error": {"message": "a\x1b[31mb\u202ec"}}), "bad_request", "a [31mb c"),
    ],
)
async def test_error_responses(client, reply, code, message):
    error = await run_failing(client, reply, attempts=1)
    assert error.fault.code == code
    assert message in str(error)
    assert len(str(error)) < 600
    assert "\x1b" not in str(error)


@pytest.mark.req("MD-6")
@pytest.mark.parametrize(
    ("code", "message"),
    [
        (400, "registry.ollama.ai/library/gemma:2b does not support tools"),
        (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
        (404, "No endpoints found that support tool use."),
        (500, "tools param requires --jinja flag"),
    ],
)
async def test_server_without_tools_is_not_retried_and_hint_names_dialect(client, code, message):
    error = await run_failing(client, status(code, {"error": {"message": message}}), attempts=3)
    assert error.fault.code == "bad_request"
    assert message in error.fault.message
    assert "--dialect text" in error.fault.hint


@pytest.mark.req("MD-3")
@pytest.mark.parametrize("code", [400, 401, 403, 404, 429, 500])
async def test_key_is_never_shown(client, code, caplog):
    caplog.set_level(logging.DEBUG)
    echo = status(code, {"error": {"message": "bad key sk-test-1234 in sk-test-1234"}})
    error = await run_failing(client, echo, attempts=1)
    assert "sk-test-1234" not in str(error)
    assert "sk-test-1234" not in repr(error.fault)
    assert "sk-test-1234" not in caplog.text


@pytest.mark.req("MD-1")
async def test_each_request_is_logged_with_provider_and_kind(client, caplog):
    caplog.set_level(logging.INFO, "ostler.models")
    await run(client, text("a"))
    assert "provider 127.0.0.1:" in caplog.text
    await run(client, text("a"), settings=ModelSettings(provider="acme"))
    assert "provider acme, apiKind openai: m at 127.0.0.1:" in caplog.text


async def test_missing_key_is_reported(client):
    error = await run_failing(client, status(401), api_key="")
    assert "requires an API key" in str(error)
    assert "OSTLER_API_KEY" in str(error)


@pytest.mark.req("MD-7")
async def test_unknown_model_error_lists_available_models(client):
    async with ScriptedModelServer(status(404), models=["qwen", "glm", "ev\x1bil"]) as server:
        with pytest.raises(BackendError) as caught:
            await collect(client(server))
    assert caught.value.fault.code == "model_unknown"
    assert "has no model 'm'; available: qwen, glm" in str(caught.value)


@pytest.mark.parametrize("models", [[], ["m"]])
async def test_wrong_path_is_reported(client, models):
    async with ScriptedModelServer(status(404), models=models) as server:
        with pytest.raises(BackendError) as caught:
            await collect(client(server))
    assert caught.value.fault.code == "wrong_url"
    assert "/v1" in str(caught.value)


LIMIT_ERRORS = [
    "max_tokens is too large: 97000. This model supports at most 16384 completion tokens, whereas you provided 97000.",
    "<400> InternalError.Algo.InvalidParameter: Range of max_tokens should be [1, 8192]",
    "This model's maximum context length is 98000 tokens. However, you requested 99300 tokens (2300 in the messages, "
    "97000 in the completion). Please reduce the length of the messages or completion.",
    "max_tokens=97000 is too large. This model's maximum context length is 98000 tokens and your request has 2300.",
]


@pytest.mark.req("EN-8")
@pytest.mark.parametrize("error_message", LIMIT_ERRORS)
async def test_rejected_reply_limit_is_omitted(client, error_message):
    """A rejected reply limit is omitted, but smaller limits are still sent."""
    async with ScriptedModelServer(status(400, {"error": {"message": error_message}}), *[text("a")] * 3) as server:
        model = client(server)
        for limit in (97_000, 120_000, 500):
            assert [chunk async for chunk in model.stream(make_request(max_tokens=limit))][-1] == ReplyFinished("stop")
        await model.aclose()
    assert [request.json.get("max_tokens") for request in server.requests] == [97_000, None, None, 500]


async def test_rejection_during_a_reply_is_not_retried(client):
    error = {"error": {"message": "maximum context length: you asked for 97000 in the completion", "code": 400}}
    first = {"choices": [{"index": 0, "delta": {"content": "half"}}]}
    async with ScriptedModelServer(sse_reply(first, error)) as server:
        chunks = []
        with pytest.raises(BackendError):
            await collect(client(server), make_request(max_tokens=97_000), into=chunks)
    assert of_type(chunks, TextChunk) == [TextChunk("half")]


@pytest.mark.parametrize(
    ("error_message", "omitted", "present"),
    [
        ("Unrecognized request argument: stream_options", "stream_options", ""),
        ("'max_tokens' is not supported, use 'max_completion_tokens' instead", "max_tokens", "max_completion_tokens"),
        ("Unsupported value: 'temperature' does not support 0.5", "temperature", "top_p"),
        ("top_p is not permitted", "top_p", "temperature"),
    ],
)
async def test_rejected_parameter_is_omitted_in_later_requests(client, error_message, omitted, present, sleeps):
    request = make_request(max_tokens=100, temperature=0.5, top_p=0.9)
    async with ScriptedModelServer(status(400, {"error": {"message": error_message}}), text("a"), text("b")) as server:
        model = client(server)
        for _ in range(2):
            assert [chunk async for chunk in model.stream(request)][-1] == ReplyFinished("stop")
        await model.aclose()
    first, *later = [request.json for request in server.requests]
    assert omitted in first
    assert all(omitted not in body and (not present or present in body) for body in later)
    assert sleeps.seconds == []


@pytest.mark.parametrize("code", [400, 500], ids=["by the server", "by its template"])
@pytest.mark.parametrize(
    "error_message",
    [
        "Only user and assistant roles are supported!",
        "System role not supported",
        "Error rendering prompt with jinja template: system messages are only allowed at the start",
    ],
)
async def test_rejected_system_messages_become_user_messages(client, sleeps, code, error_message):
    """First those in mid-conversation, then the system prompt too. The client remembers it."""
    history = (
        UserMessage((TextContent("hi"),)),
        AssistantMessage(Message("m1", (TextContent("so"),))),
        SystemMessage("note"),
    )
    request = ModelRequest("be brief", (*history, UserMessage((TextContent("go on"),))))
    rejection = status(code, {"error": {"message": error_message}})
    async with ScriptedModelServer(rejection, rejection, text("a"), text("b")) as server:
        model = client(server)
        for _ in range(2):
            assert [chunk async for chunk in model.stream(request)][-1] == ReplyFinished("stop")
        await model.aclose()
    sent_messages = [
        [(message["role"], message["content"]) for message in recorded.json["messages"]] for recorded in server.requests
    ]
    assert [[role for role, _ in messages] for messages in sent_messages] == [
        ["system", "user", "assistant", "system", "user"],
        ["system", "user", "assistant", "user"],
        ["user", "assistant", "user"],
        ["user", "assistant", "user"],
    ]
    assert sent_messages[2][0] == ("user", "<system>\nbe brief\n</system>\n\nhi")
    assert sent_messages[2] == sent_messages[3]
    assert sleeps.seconds == []


async def test_unspecific_rejection_is_not_retried(client):
    assert (
        await run_failing(client, status(400, {"error": {"message": "stream_options: no"}}), status(400))
    ).fault.code == ("bad_request")


@pytest.mark.req("DX-6")
async def test_one_connection_serves_all_requests(client):
    replies = [calls([("read", {"path": str(number)})]) for number in range(10)]
    async with ScriptedModelServer(*replies, text("done")) as server:
        model = client(server)
        for _ in range(11):
            async for _chunk in model.stream(make_request()):
                pass
        await model.aclose()
    assert server.connections == 1


async def test_closing_the_stream_closes_the_connection(client):
    async with ScriptedModelServer(text("abcdef", chunks=6).stall_after(3)) as server:
        model = client(server)
        stream = model.stream(make_request())
        assert isinstance(await anext(stream), TextChunk)
        await stream.aclose()
        await server.wait_for_disconnects()
        await model.aclose()


@pytest.mark.req("MD-8")
async def test_window_is_configured_reported_or_default(client):
    async with ScriptedModelServer(models=[{"id": "m", "max_model_len": 8192}]) as server:
        model = client(server)
        assert model.context_limit == 32_768
        assert await model.fetch_window() == 8192
        assert model.context_limit == 8192
        assert [entry.id for entry in await model.models()] == ["m"]
        await model.aclose()
        fixed = client(server, context_window=1000)
        assert await fixed.fetch_window() == 1000
        await fixed.aclose()
