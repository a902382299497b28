"""Fallback profiles: when they are used, and which output is never repeated."""

import json

import pytest
from model_helpers import collect, make_request, of_type, text_of, thoughts_of

from ostler.core.errors import BackendError, UsageError
from ostler.models.fallback import COOLDOWN_SECONDS, FallbackModel, FallbackProfile
from ostler.models.model_choice import choose_model, make_model
from ostler.models.model_settings import ModelSettings, Sampling
from ostler.models.model_types import CallChunk, FallbackStarted, ReplyFinished, ThoughtChunk
from ostler.settings.load import load
from ostler.settings.model_profiles import Profile
from ostler.testing.model_server import ScriptedModelServer, raw, sse_event, stall, status, text


def error(message, kind):
    return {"error": {"message": message, "type": kind}}


QUOTA = status(429, error("You exceeded your current quota", "insufficient_quota"))
LATER = status(429, error("slow down", "rate_limit_exceeded"), headers={"retry-after": "90000"})


def make_fallback(first, second, **options):
    return FallbackModel(first, [FallbackProfile("second", lambda: second)], **options)


@pytest.mark.req("MD-5")
@pytest.mark.parametrize(
    "failing",
    [(QUOTA,), (LATER,), (status(503),) * 3, (raw(b""),) * 3, (text("a").cut_after(10, reset=True),) * 3],
    ids=["quota", "days", "outage", "nothing", "reset"],
)
async def test_fallback_answers_when_the_primary_fails(client, failing):
    async with ScriptedModelServer(*failing) as first, ScriptedModelServer(text("from the second")) as second:
        chunks = await collect(make_fallback(client(first, model="one"), client(second, model="two")))
    [fallback] = of_type(chunks, FallbackStarted)
    assert (fallback.profile, fallback.model) == ("second", "two")
    assert str(first.port) in fallback.reason
    assert text_of(chunks) == "from the second"
    assert chunks[-1] == ReplyFinished("stop")


@pytest.mark.req("MD-5")
@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (status(401), "key_refused"),
        (status(400), "bad_request"),
        (status(400, error("maximum context length is 10", "context_length_exceeded")), "context_length"),
        (text("some words", chunks=3).cut_after(400), "cut"),
    ],
)
async def test_no_fallback_for_permanent_errors_or_after_output(client, reply, code):
    async with ScriptedModelServer(reply) as first, ScriptedModelServer() as second:
        chunks = []
        with pytest.raises(BackendError) as caught:
            await collect(make_fallback(client(first, attempts=1), client(second)), into=chunks)
    assert caught.value.fault.code == code
    assert not of_type(chunks, FallbackStarted)


async def test_yielded_call_is_never_repeated(client):
    """A call in text is recognized before its reply ends."""
    call = '<tool_call>{"name": "bash", "arguments": {"command": "rm x"}}</tool_call> and then'
    broken = raw(
        sse_event({"choices": [{"delta": {"content": call}}]}), sse_event({"choices": [{"delta": {"content": "…"}}]})
    )
    async with ScriptedModelServer(broken) as first, ScriptedModelServer() as second:
        primary = make_model(Profile(name="a", model="m", base_url=first.base_url))
        chunks = []
        with pytest.raises(BackendError):
            await collect(make_fallback(primary, client(second)), into=chunks)
    assert [chunk.tool for chunk in of_type(chunks, CallChunk)] == ["bash"]


async def test_thoughts_before_a_fallback_are_void(client):
    thinking = raw(sse_event({"choices": [{"delta": {"reasoning_content": "hm"}}]}))
    async with ScriptedModelServer(thinking) as first, ScriptedModelServer(text("b", thought="aha")) as second:
        chunks = await collect(make_fallback(client(first, attempts=1), client(second)))
    index = next(index for index, chunk in enumerate(chunks) if isinstance(chunk, FallbackStarted))
    assert of_type(chunks[:index], ThoughtChunk)
    assert thoughts_of(chunks[index:]) == "aha"


@pytest.mark.req("MD-5")
async def test_next_stream_uses_the_announced_profile(client):
    """Also if all profiles failed recently, so that there is no endless loop."""
    async with ScriptedModelServer(QUOTA, QUOTA) as first, ScriptedModelServer(QUOTA, text("at last")) as second:
        model = make_fallback(client(first), client(second), name="first", clock=lambda: 0.0)
        with pytest.raises(BackendError):
            [chunk async for chunk in model.stream(make_request())]
        for profile in ("first", "second"):
            chunks = model.stream(make_request())
            assert (await anext(chunks)).profile == profile
            await chunks.aclose()
        assert text_of(await collect(model)) == "at last"


@pytest.mark.req("MD-5")
async def test_failed_profile_is_used_again_after_its_cooldown(client):
    now = [0.0]
    async with (
        ScriptedModelServer(QUOTA, text("back")) as first,
        ScriptedModelServer(text("b"), text("c")) as second,
    ):
        model = make_fallback(client(first, model="one"), client(second, model="two"), clock=lambda: now[0])
        texts, names = [], []
        for time in (0.0, COOLDOWN_SECONDS - 1, COOLDOWN_SECONDS):
            now[0] = time
            texts.append(text_of([chunk async for chunk in model.stream(make_request())]))
            names.append(model.name)
        await model.aclose()
    assert texts == ["b", "c", "back"]
    assert names == ["two", "two", "one"]


async def test_last_error_is_raised_and_the_first_profile_is_next(client):
    async with ScriptedModelServer(QUOTA, text("works again")) as first, ScriptedModelServer(QUOTA) as second:
        model = make_fallback(client(first), client(second))
        with pytest.raises(BackendError, match=str(second.port)):
            _ = [chunk async for chunk in model.stream(make_request())]
        assert text_of(await collect(model)) == "works again"


async def test_closing_the_stream_closes_the_connection(client):
    async with ScriptedModelServer(text("a b c", chunks=3).stall_after(2)) as first, ScriptedModelServer() as second:
        model = make_fallback(client(first), client(second))
        chunks = model.stream(make_request())
        await anext(chunks)
        await chunks.aclose()
        await first.wait_for_disconnects()
        await model.aclose()


async def test_fallback_replaces_a_silent_server(client):
    async with ScriptedModelServer(stall()) as first, ScriptedModelServer(text("here")) as second:
        chunks = await collect(make_fallback(client(first, attempts=1), client(second)))
    assert text_of(chunks) == "here"
    assert "nothing for" in of_type(chunks, FallbackStarted)[0].reason


def settings_with(tmp_path, profiles):
    home = tmp_path / "home"
    (home / ".ostler").mkdir(parents=True)
    models = {"profiles": profiles, "active": profiles[0]["name"]}
    (home / ".ostler" / "config.json").write_text(json.dumps({"models": models}))
    env = {"HOME": str(home), "OSTLER_HOME": str(home / ".ostler"), "OSTLER_API_KEY": "sk-of-the-first"}
    return load(tmp_path, env), env


@pytest.mark.req("MD-2")
async def test_fallback_uses_its_own_endpoint_key_and_dialect(tmp_path):
    block = '!unquote_start\n<tool_call id="x" lang="javascript" #>SysBuiltIn.read({path: "a"})</#>\n!unquote_end'
    async with ScriptedModelServer(QUOTA) as first, ScriptedModelServer(text(block)) as second:
        profiles = [
            {"name": "a", "model": "one", "baseUrl": first.base_url, "fallback": ["b", "a"]},
            {"name": "b", "model": "two", "baseUrl": second.base_url, "apiKey": "sk-of-the-second",
             "apiKind": "anthropic", "dialect": "xnl", "fallback": ["a"]},
        ]  # fmt: skip
        settings, env = settings_with(tmp_path, profiles)
        choice = await choose_model(settings, {}, env)
        chunks = await collect(choice.make(""))
    assert choice.description.endswith("; fallback b")
    assert [(chunk.tool, chunk.arguments) for chunk in of_type(chunks, CallChunk)] == [
        ("SysBuiltIn.read", '{"path":"a"}')
    ]
    sent = second.requests[0]
    assert (sent.path, sent.headers["x-api-key"]) == ("/v1/messages", "sk-of-the-second")
    assert "sk-of-the-first" not in str(sent)
    assert "sk-of-the-second" not in str(first.requests)


@pytest.mark.req("MD-2")
@pytest.mark.parametrize(
    ("fallback", "message"),
    [("nobody", r"no profile .*nobody.*'a', 'b'|nobody"), ("b", "'b', a fallback of 'a', needs")],
)
async def test_invalid_fallback_is_reported_at_the_start(tmp_path, fallback, message):
    profiles = [
        {"name": "a", "model": "one", "baseUrl": "http://127.0.0.1:9/v1", "fallback": [fallback]},
        {"name": "b", "baseUrl": "http://127.0.0.1:9/v1"},
    ]
    settings, env = settings_with(tmp_path, profiles)
    with pytest.raises(UsageError, match=message):
        await choose_model(settings, {}, env)


@pytest.mark.req("MD-2", "MD-3")
async def test_fallback_without_its_variable_is_skipped_and_reported(tmp_path):
    async with ScriptedModelServer(text("x")) as server:
        profiles = [
            {"name": "a", "model": "one", "baseUrl": server.base_url, "fallback": ["b", "c"]},
            {"name": "b", "model": "two", "baseUrl": server.base_url, "apiKey": "{env:UNSET}"},
            {"name": "c", "model": "three", "baseUrl": server.base_url},
        ]
        settings, env = settings_with(tmp_path, profiles)
        choice = await choose_model(settings, {}, env)
        assert text_of(await collect(choice.make(""))) == "x"
        with pytest.raises(UsageError, match="UNSET, which is not set"):
            choice.make("b")
    assert choice.description.endswith(
        "; fallback c; fallback b skipped: environment variable not set (see `ostler doctor`)"
    )


@pytest.mark.req("MD-7")
async def test_model_can_be_changed_by_profile_or_model_name(tmp_path):
    async with ScriptedModelServer(text("x")) as first, ScriptedModelServer(text("y")) as second:
        profiles = [
            {"name": "a", "model": "one", "baseUrl": first.base_url},
            {"name": "b", "model": "two", "baseUrl": second.base_url, "apiKey": "sk-of-the-second"},
        ]
        settings, env = settings_with(tmp_path, profiles)
        choice = await choose_model(settings, {}, env)
        await collect(choice.make("b"))
        await collect(choice.make("three"))
    assert (second.requests[0].json["model"], first.requests[0].json["model"]) == ("two", "three")
    assert second.requests[0].headers["authorization"] == "Bearer sk-of-the-second"


async def test_reply_limit_is_that_of_the_answering_model(client):
    def token_limit(tokens):
        return ModelSettings(sampling=Sampling(max_tokens=tokens))

    async with ScriptedModelServer(QUOTA) as first, ScriptedModelServer(text("a")) as second:
        model = make_fallback(client(first, settings=token_limit(100)), client(second, settings=token_limit(70)))
        assert model.max_reply_tokens == 100
        await collect(model)
        assert model.max_reply_tokens == 70
    assert second.requests[0].json["max_tokens"] == 70
