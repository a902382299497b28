"""Replies of OpenAI-compatible servers over real HTTP, in every shape they come in."""

import json
import logging

import pytest
from model_talk import ask, collect, only, thoughts, words

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


async def play(client, *replies, request=None, **values):
    async with ScriptedModelServer(*replies) as server:
        return await collect(client(server, **values), request)


async def fails(client, *replies, into=None, **values):
    async with ScriptedModelServer(*replies) as server:
        with pytest.raises(BackendError) as caught:
            await collect(client(server, **values), into=into)
    return caught.value


@pytest.mark.req("MD-1", "MD-4")
@pytest.mark.parametrize("framing", ["chunked", "length", "close"])
@pytest.mark.parametrize("write_size", [0, 1, 13])
async def test_words_arrive_whole(client, framing, write_size):
    said = "Grüße, 世界 🐎\u2028 and\u0085 more"
    reply = (
        text(said, chunks=7, thought="hmm, ja").with_usage(20, 9, 4).with_framing(framing).with_write_size(write_size)
    )
    chunks = await play(client, reply)
    assert words(chunks) == said
    assert thoughts(chunks) == "hmm, ja"
    assert chunks[-2:] == [Usage(20, 9, 4), ReplyFinished("stop")]


@pytest.mark.req("DX-6")
async def test_one_read_of_the_socket_is_one_chunk(client):
    written = b"".join(sse_event(delta(content="abcd")) for _ in range(100)) + sse_event(STOP)
    chunks = await play(client, raw(written, b"data: [DONE]\n\n").with_framing("length"))
    assert words(chunks) == "abcd" * 100
    assert len(only(chunks, TextChunk)) <= 2


@pytest.mark.req("MD-4")
@pytest.mark.parametrize("whole", [False, True])
async def test_calls_arrive_whole(client, whole):
    wanted = calls(
        [("read", {"path": "ä.txt"}), ScriptedToolCall("bash", {"command": "ls"}, "id-7")], text="let me look"
    )
    chunks = await play(client, wanted.as_json() if whole else wanted)
    assert words(chunks) == "let me look"
    first, second = only(chunks, CallChunk)
    assert (first.id, first.tool, json.loads(first.arguments)) == ("call_1_0", "read", {"path": "ä.txt"})
    assert (second.id, second.tool, json.loads(second.arguments)) == ("id-7", "bash", {"command": "ls"})
    assert chunks[-1] == ReplyFinished("calls")


@pytest.mark.req("MD-4")
async def test_json_in_place_of_a_stream(client):
    chunks = await play(client, text("hello", thought="so").as_json())
    assert chunks == [ThoughtChunk("so"), TextChunk("hello"), Usage(10, 5, 0), ReplyFinished("stop")]


@pytest.mark.req("MD-4")
@pytest.mark.parametrize(
    ("content", "said", "thought"),
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
async def test_content_in_any_shape(client, content, said, thought):
    chunks = await play(client, sse_reply(delta(content="<"), delta(content=content), STOP))
    assert (words(chunks), thoughts(chunks)) == ("<" + said, thought)


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
        [delta(content=piece) for piece in ("<th", "ink>w", "hy</", "think>", "\n\nso")],
        [{"choices": [{"message": {"role": "assistant", "reasoning": "why", "content": "so"}}]}],
    ],
)
async def test_reasoning_is_kept_apart(client, deltas):
    chunks = await play(client, sse_reply(*deltas, STOP))
    assert (thoughts(chunks), words(chunks)) == ("why", "so")


WRITTEN = '{"path":"a"}'
WHOLE = {"id": "x", "function": {"name": "read", "arguments": WRITTEN}}


@pytest.mark.req("MD-4")
@pytest.mark.parametrize(
    "deltas",
    [
        [call_delta(index=0, id="x", function={"name": "read", "arguments": {"path": "a"}})],
        [
            call_delta(index="0", id="x", function={"name": "re"}),
            call_delta(index="0", function={"name": "ad", "arguments": WRITTEN}),
        ],
        [
            call_delta(index=0, id="x", function={"name": "read"}),
            call_delta(index=0, function={"arguments": '{"path":'}),
            call_delta(index=0, id=None, function={"name": None, "arguments": '"a"}'}),
        ],
        [call_delta(id="x", name="read", arguments=WRITTEN)],
        [call_delta(id="x", name="read", input={"path": "a"})],
        [delta(tool_calls=WHOLE)],
        [{"choices": [{"message": {"tool_calls": [WHOLE]}}]}],
        [{"choices": [{"delta": {"content": ""}}, {"delta": {"tool_calls": [WHOLE]}}]}],
    ],
)
async def test_calls_in_any_shape(client, deltas):
    chunks = await play(client, sse_reply(*deltas, {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}))
    (call,) = only(chunks, CallChunk)
    assert (call.id, call.tool, json.loads(call.arguments)) == ("x", "read", {"path": "a"})


@pytest.mark.req("MD-4")
async def test_the_old_kind_of_call_and_missing_ids(client):
    old = [delta(function_call={"name": "read", "arguments": "{"}), delta(function_call={"arguments": "}"})]
    end = {"choices": [{"delta": {}, "finish_reason": "function_call"}]}
    chunks = await play(client, sse_reply(*old, end))
    assert only(chunks, CallChunk) == [CallChunk("call_0", "read", "{}")]
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
async def test_reasons(client, reason, finished):
    told = reason if finished == "other" else ""
    assert (await play(client, text("a").with_finish_reason(reason)))[-1] == ReplyFinished(finished, told)


async def test_calls_end_with_calls_whatever_the_server_says(client):
    assert (await play(client, calls([("read", {})]).with_finish_reason("stop")))[-1] == ReplyFinished("calls")
    for cut in ("length", "content_filter"):
        ended = (await play(client, calls([("read", {})]).with_finish_reason(cut)))[-1]
        assert ended.reason in ("length", "filtered")


async def test_a_refusal(client):
    chunks = await play(client, sse_reply(delta(refusal="I "), delta(refusal="won't"), STOP))
    assert words(chunks) == "I won't"
    assert chunks[-1] == ReplyFinished("refusal")


@pytest.mark.req("MD-8")
@pytest.mark.parametrize(
    ("usage", "counted"),
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
@pytest.mark.parametrize("choices", [[], None, "left out"])
async def test_usage_with_empty_choices(client, usage, counted, choices):
    frame = {"usage": usage} if choices == "left out" else {"usage": usage, "choices": choices}
    chunks = await play(client, sse_reply(delta(content="a"), STOP, frame))
    assert only(chunks, Usage) == ([counted] if counted else [])


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
async def test_endings_that_are_good_enough(client, reply):
    chunks = await play(client, reply)
    assert words(chunks) == "abc"
    assert chunks[-1] == ReplyFinished("stop")


@pytest.mark.req("MD-4")
async def test_halves_of_a_character_in_two_pieces(client):
    halves = ["a\ud83d", "\udc0eb", "\ud83d"]
    pieces = [sse_event(delta(content=half)) for half in halves]  # json.dumps writes each half as an escape
    chunks = await play(client, raw(*pieces, sse_event(STOP)))
    assert words(chunks) == "a🐎b"
    words(chunks).encode()


async def test_broken_utf8_is_replaced(client):
    chunks = await play(client, raw(b'data: {"choices":[{"delta":{"content":"a\xffb"}}]}\n\n', sse_event(STOP)))
    assert words(chunks) == "a\ufffdb"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"data: {broken\n\n", "broken JSON"),
        (b"data: " + b"[" * 200_000 + b"\n\n", "nested too deeply"),
        (b'data: {"choices":' + b"[" * 200_000 + b"]" * 200_000 + b"}\n\n", "nested too deeply"),
        (b'data: {"usage":{"a":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}}\n\n", "nested too deeply"),
        (b'data: {"choices":[],"usage":{"prompt_tokens":' + b"9" * 100_000 + b"}}\n\n", "broken JSON"),
        (b"data: " + b"x" * (17 * 1024 * 1024), "without end"),
        (b"{" + b"x" * 100, "broken JSON"),
        (b"{" + b"x" * (33 * 1024 * 1024), "without end"),
    ],
)
async def test_hostile_replies_end_in_a_typed_error(client, body, said):
    error = await fails(client, raw(body))
    assert error.fault.code == "malformed"
    assert said in str(error)
    assert len(str(error)) < 400


async def test_words_before_a_broken_event_are_kept(client):
    chunks = []
    error = await fails(client, raw(sse_event(delta(content="abc")) + b"data: {broken\n\n"), into=chunks)
    assert words(chunks) == "abc"
    assert error.fault.code == "malformed"


async def test_a_web_page_means_a_wrong_base_url(client):
    error = await fails(client, html())
    assert error.fault.code == "wrong_url"
    assert "base URL seems wrong" in str(error)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ({"message": "CUDA out of memory", "type": "server_error"}, "server_error"),
        ({"message": "maximum context length is 4096", "code": 400}, "context_length"),
        ({"message": "busy", "code": 429}, "rate_limited"),
        ({"message": "upstream died", "code": 502}, "server_error"),
        ("just words", "bad_request"),
    ],
)
async def test_an_error_within_the_stream(client, error, code):
    failure = await fails(client, sse_reply({"error": error}), attempts=1)
    assert failure.fault.code == code


async def test_an_error_after_words_keeps_them(client):
    chunks = []
    error = await fails(
        client, sse_reply(delta(content="abc"), {"error": {"message": "died", "code": 500}}), into=chunks
    )
    assert words(chunks) == "abc"
    assert error.fault.code == "cut"


@pytest.mark.req("MD-4")
@pytest.mark.parametrize(
    "empty", [{}, {"choices": None, "usage": None}, {"type": "ping"}, {"object": "chunk", "id": "x"}]
)
async def test_an_event_that_says_nothing_is_passed_over(client, empty):
    chunks = await play(client, sse_reply(empty, delta(content="a"), empty, STOP, empty))
    assert words(chunks) == "a"


@pytest.mark.parametrize("odd", [{"object": "error", "message": "context length exceeded", "code": 400}])
async def test_an_error_that_is_the_whole_event(client, odd):
    assert (await fails(client, sse_reply(odd))).fault.code == "context_length"


LONG = "This model's maximum context length is 4096 tokens."
SPENT = {"code": "insufficient_quota", "message": "You exceeded your current quota"}
BUSY = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}


@pytest.mark.req("MD-5")
@pytest.mark.parametrize(
    ("reply", "code", "said"),
    [
        (status(401), "key_refused", "the key was refused by 127.0.0.1"),
        (status(403, {"error": {"message": "no access to this region"}}), "key_refused", "region"),
        (status(400, {"error": {"message": "no", "code": "context_length_exceeded"}}), "context_length", "no"),
        (status(400, {"object": "error", "message": LONG}), "context_length", "4096"),
        (status(400, {"error": {"type": "exceed_context_size_error", "message": "n_ctx"}}), "context_length", "n_ctx"),
        (status(413, {"error": "request exceeds context size"}), "context_length", ""),
        (status(400, {"detail": [{"loc": ["body"], "msg": "field required"}]}), "bad_request", "field required"),
        (status(422, "plain words"), "bad_request", "plain words"),
        (status(402, {"error": {"message": "pay"}}), "quota", "pay"),
        (status(429, {"error": SPENT}), "quota", "quota"),
        (status(429, {"error": {"message": "free-models-per-day limit"}}), "quota", ""),
        (status(500), "server_error", "failed (500)"),
        (status(502, "<html><h1>Bad gateway</h1>"), "server_error", "failed (502)"),
        (status(503, "x" * 100_000), "server_error", "(503)"),
        (status(529, BUSY), "server_error", "Overloaded"),
        (status(307, "", headers={"location": "https://else.example/v1"}), "wrong_url", "https://else.example/v1"),
        (status(418, {"error": {"message": "a\x1b[31mb\u202ec"}}), "bad_request", "a [31mb c"),
    ],
)
async def test_refusals(client, reply, code, said):
    error = await fails(client, reply, attempts=1)
    assert error.fault.code == code
    assert said in str(error)
    assert len(str(error)) < 600
    assert "\x1b" not in str(error)


@pytest.mark.req("MD-6")
@pytest.mark.parametrize(
    ("number", "message"),
    [
        (400, "registry.ollama.ai/library/gemma:2b does not support tools"),
        (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
        (404, "No endpoints found that support tool use."),
        (500, "tools param requires --jinja flag"),
    ],
)
async def test_a_server_that_takes_no_tools_is_not_asked_again_and_another_dialect_is_named(client, number, message):
    error = await fails(client, status(number, {"error": {"message": message}}), attempts=3)
    assert error.fault.code == "bad_request"
    assert message in error.fault.message
    assert "--dialect text" in error.fault.hint


@pytest.mark.req("MD-3")
@pytest.mark.parametrize("code", [400, 401, 403, 404, 429, 500])
async def test_the_key_is_never_shown(client, code, caplog):
    caplog.set_level(logging.DEBUG)
    echo = status(code, {"error": {"message": "bad key sk-test-1234 in sk-test-1234"}})
    error = await fails(client, echo, attempts=1)
    assert "sk-test-1234" not in str(error)
    assert "sk-test-1234" not in repr(error.fault)
    assert "sk-test-1234" not in caplog.text


@pytest.mark.req("MD-1")
async def test_each_request_is_logged_with_provider_and_kind(client, caplog):
    caplog.set_level(logging.INFO, "ostler.models")
    await play(client, text("a"))
    assert "provider 127.0.0.1:" in caplog.text
    await play(client, text("a"), settings=ModelSettings(provider="acme"))
    assert "provider acme, apiKind openai: m at 127.0.0.1:" in caplog.text


async def test_a_missing_key_is_said(client):
    error = await fails(client, status(401), api_key="")
    assert "wants a key" in str(error)
    assert "OSTLER_API_KEY" in str(error)


@pytest.mark.req("MD-7")
async def test_an_unknown_model_is_answered_with_the_names_there_are(client):
    async with ScriptedModelServer(status(404), models=["qwen", "glm", "ev\x1bil"]) as server:
        with pytest.raises(BackendError) as caught:
            await collect(client(server))
    assert caught.value.fault.code == "model_unknown"
    assert "has no model 'm'; it has qwen, glm" in str(caught.value)


@pytest.mark.parametrize("models", [[], ["m"]])
async def test_a_wrong_path_is_said(client, models):
    async with ScriptedModelServer(status(404), models=models) as server:
        with pytest.raises(BackendError) as caught:
            await collect(client(server))
    assert caught.value.fault.code == "wrong_url"
    assert "/v1" in str(caught.value)


TOO_MUCH = [
    "max_tokens is too large: 97000. This model supports at most 16384 completion tokens, whereas you provided 97000.",
    "<400> InternalError.Algo.InvalidParameter: Range of max_tokens should be [1, 8192]",
    "This model's maximum context length is 98000 tokens. However, you requested 99300 tokens (2300 in the messages, "
    "97000 in the completion). Please reduce the length of the messages or completion.",
    "max_tokens=97000 is too large. This model's maximum context length is 98000 tokens and your request has 2300.",
]


@pytest.mark.req("EN-8")
@pytest.mark.parametrize("refusal", TOO_MUCH)
async def test_a_longest_reply_that_a_server_does_not_allow_is_left_to_it(client, refusal):
    """What a budget leaves may be more than a model can say at once; a shorter limit is told all the same."""
    async with ScriptedModelServer(status(400, {"error": {"message": refusal}}), *[text("a")] * 3) as server:
        model = client(server)
        for most in (97_000, 120_000, 500):
            assert [chunk async for chunk in model.stream(ask(max_tokens=most))][-1] == ReplyFinished("stop")
        await model.aclose()
    assert [request.json.get("max_tokens") for request in server.requests] == [97_000, None, None, 500]


async def test_a_refusal_in_the_middle_of_a_reply_begins_no_other(client):
    told = {"error": {"message": "maximum context length: you asked for 97000 in the completion", "code": 400}}
    words = {"choices": [{"index": 0, "delta": {"content": "half"}}]}
    async with ScriptedModelServer(sse_reply(words, told)) as server:
        chunks = []
        with pytest.raises(BackendError):
            await collect(client(server), ask(max_tokens=97_000), into=chunks)
    assert only(chunks, TextChunk) == [TextChunk("half")]


@pytest.mark.parametrize(
    ("refusal", "gone", "there"),
    [
        ("Unrecognized request argument: stream_options", "stream_options", ""),
        ("'max_tokens' is not supported, use 'max_completion_tokens' instead", "max_tokens", "max_completion_tokens"),
        ("Unsupported value: 'temperature' does not support 0.5", "temperature", "top_p"),
        ("top_p is not permitted", "top_p", "temperature"),
    ],
)
async def test_what_a_server_does_not_take_is_left_out_from_then_on(client, refusal, gone, there, naps):
    request = ask(max_tokens=100, temperature=0.5, top_p=0.9)
    async with ScriptedModelServer(status(400, {"error": {"message": refusal}}), text("a"), text("b")) as server:
        model = client(server)
        for _ in range(2):
            assert [chunk async for chunk in model.stream(request)][-1] == ReplyFinished("stop")
        await model.aclose()
    first, *later = [request.json for request in server.requests]
    assert gone in first
    assert all(gone not in body and (not there or there in body) for body in later)
    assert naps.taken == []


@pytest.mark.parametrize("code", [400, 500], ids=["by the server", "by its template"])
@pytest.mark.parametrize(
    "refusal",
    [
        "Only user and assistant roles are supported!",
        "System role not supported",
        "Error rendering prompt with jinja template: system messages are only allowed at the start",
    ],
)
async def test_a_template_without_system_messages_gets_them_in_the_users_name(client, naps, code, refusal):
    """First those in mid-conversation, then the first one too; what was found out stays so."""
    history = (
        UserMessage((TextContent("hi"),)),
        AssistantMessage(Message("m1", (TextContent("so"),))),
        SystemMessage("note"),
    )
    request = ModelRequest("be brief", (*history, UserMessage((TextContent("go on"),))))
    refused = status(code, {"error": {"message": refusal}})
    async with ScriptedModelServer(refused, refused, text("a"), text("b")) as server:
        model = client(server)
        for _ in range(2):
            assert [chunk async for chunk in model.stream(request)][-1] == ReplyFinished("stop")
        await model.aclose()
    told = [[(one["role"], one["content"]) for one in sent.json["messages"]] for sent in server.requests]
    assert [[role for role, _ in messages] for messages in told] == [
        ["system", "user", "assistant", "system", "user"],
        ["system", "user", "assistant", "user"],
        ["user", "assistant", "user"],
        ["user", "assistant", "user"],
    ]
    assert told[2][0] == ("user", "<system>\nbe brief\n</system>\n\nhi")
    assert told[2] == told[3]
    assert naps.taken == []


async def test_a_refusal_that_names_nothing_is_not_repeated(client):
    assert (await fails(client, status(400, {"error": {"message": "stream_options: no"}}), status(400))).fault.code == (
        "bad_request"
    )


@pytest.mark.req("DX-6")
async def test_one_connection_serves_a_whole_turn(client):
    replies = [calls([("read", {"path": str(at)})]) for at in range(10)]
    async with ScriptedModelServer(*replies, text("done")) as server:
        model = client(server)
        for _ in range(11):
            async for _chunk in model.stream(ask()):
                pass
        await model.aclose()
    assert server.connections == 1


async def test_leaving_in_the_middle_ends_the_connection(client):
    async with ScriptedModelServer(text("abcdef", chunks=6).stall_after(3)) as server:
        model = client(server)
        stream = model.stream(ask())
        assert isinstance(await anext(stream), TextChunk)
        await stream.aclose()
        await server.wait_for_disconnects()
        await model.aclose()


@pytest.mark.req("MD-8")
async def test_the_window_is_set_or_told_or_known(client):
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
