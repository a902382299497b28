"""Another profile goes on where one cannot answer: when, in whose words, and never twice."""

import json

import pytest
from model_talk import ask, collect, only, thoughts, words

from ostler.app.model_choice import choose_model, make_model
from ostler.core.errors import BackendError, UsageError
from ostler.models.fallback import COOLDOWN_SECONDS, FallbackModel, FallbackProfile
from ostler.models.model_settings import ModelSettings, Sampling
from ostler.models.model_types import CallChunk, FallbackStarted, ReplyFinished, ThoughtChunk
from ostler.settings.load import load
from ostler.settings.model_profiles import Profile
from ostler.testing.model_server import ScriptedModelServer, raw, sse_event, stall, status, text


def error(message, kind):
    return {"error": {"message": message, "type": kind}}


QUOTA = status(429, error("You exceeded your current quota", "insufficient_quota"))
LATER = status(429, error("slow down", "rate_limit_exceeded"), headers={"retry-after": "90000"})


def pair(first, second, **how):
    return FallbackModel(first, [FallbackProfile("second", lambda: second)], **how)


@pytest.mark.req("MD-5")
@pytest.mark.parametrize(
    "failing",
    [(QUOTA,), (LATER,), (status(503),) * 3, (raw(b""),) * 3, (text("a").cut_after(10, reset=True),) * 3],
    ids=["quota", "days", "outage", "nothing", "reset"],
)
async def test_another_goes_on_when_one_cannot_answer(client, failing):
    async with ScriptedModelServer(*failing) as first, ScriptedModelServer(text("from the second")) as second:
        chunks = await collect(pair(client(first, model="one"), client(second, model="two")))
    [handed] = only(chunks, FallbackStarted)
    assert (handed.profile, handed.model) == ("second", "two")
    assert str(first.port) in handed.reason
    assert words(chunks) == "from the second"
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
async def test_nobody_goes_on_where_it_would_not_help_or_say_things_twice(client, reply, code):
    async with ScriptedModelServer(reply) as first, ScriptedModelServer() as second:
        chunks = []
        with pytest.raises(BackendError) as caught:
            await collect(pair(client(first, attempts=1), client(second)), into=chunks)
    assert caught.value.fault.code == code
    assert not only(chunks, FallbackStarted)


async def test_a_call_that_was_passed_on_is_never_made_again(client):
    """A text call is known before its reply is over."""
    call = '<tool_call>{"name": "bash", "arguments": {"command": "rm x"}}</tool_call> and then'
    broken = raw(
        sse_event({"choices": [{"delta": {"content": call}}]}), sse_event({"choices": [{"delta": {"content": "…"}}]})
    )
    async with ScriptedModelServer(broken) as first, ScriptedModelServer() as second:
        speaker = make_model(Profile(name="a", model="m", base_url=first.base_url))
        chunks = []
        with pytest.raises(BackendError):
            await collect(pair(speaker, client(second)), into=chunks)
    assert [chunk.tool for chunk in only(chunks, CallChunk)] == ["bash"]


async def test_thoughts_that_came_are_void(client):
    thinking = raw(sse_event({"choices": [{"delta": {"reasoning_content": "hm"}}]}))
    async with ScriptedModelServer(thinking) as first, ScriptedModelServer(text("b", thought="aha")) as second:
        chunks = await collect(pair(client(first, attempts=1), client(second)))
    at = next(at for at, chunk in enumerate(chunks) if isinstance(chunk, FallbackStarted))
    assert only(chunks[:at], ThoughtChunk)
    assert thoughts(chunks[at:]) == "aha"


@pytest.mark.req("MD-5")
async def test_who_asks_again_when_told_of_another_is_answered_by_that_one(client):
    """Also where all have failed lately, so that nobody goes round in circles."""
    async with ScriptedModelServer(QUOTA, QUOTA) as first, ScriptedModelServer(QUOTA, text("at last")) as second:
        model = pair(client(first), client(second), name="first", clock=lambda: 0.0)
        with pytest.raises(BackendError):
            [chunk async for chunk in model.stream(ask())]
        for profile in ("first", "second"):
            chunks = model.stream(ask())
            assert (await anext(chunks)).profile == profile
            await chunks.aclose()
        assert words(await collect(model)) == "at last"


@pytest.mark.req("MD-5")
async def test_the_one_that_failed_rests_and_is_asked_again_later(client):
    now = [0.0]
    async with (
        ScriptedModelServer(QUOTA, text("back")) as first,
        ScriptedModelServer(text("b"), text("c")) as second,
    ):
        both = pair(client(first, model="one"), client(second, model="two"), clock=lambda: now[0])
        said, names = [], []
        for later in (0.0, COOLDOWN_SECONDS - 1, COOLDOWN_SECONDS):
            now[0] = later
            said.append(words([chunk async for chunk in both.stream(ask())]))
            names.append(both.name)
        await both.aclose()
    assert said == ["b", "c", "back"]
    assert names == ["two", "two", "one"]


async def test_when_all_fail_the_last_one_says_why_and_the_first_is_asked_next(client):
    async with ScriptedModelServer(QUOTA, text("well again")) as first, ScriptedModelServer(QUOTA) as second:
        both = pair(client(first), client(second))
        with pytest.raises(BackendError, match=str(second.port)):
            _ = [chunk async for chunk in both.stream(ask())]
        assert words(await collect(both)) == "well again"


async def test_leaving_a_reply_leaves_the_server(client):
    async with ScriptedModelServer(text("a b c", chunks=3).stall_after(2)) as first, ScriptedModelServer() as second:
        both = pair(client(first), client(second))
        chunks = both.stream(ask())
        await anext(chunks)
        await chunks.aclose()
        await first.wait_for_disconnects()
        await both.aclose()


async def test_a_silent_server_is_given_up_for_another(client):
    async with ScriptedModelServer(stall()) as first, ScriptedModelServer(text("here")) as second:
        chunks = await collect(pair(client(first, attempts=1), client(second)))
    assert words(chunks) == "here"
    assert "nothing for" in only(chunks, FallbackStarted)[0].reason


def settings_with(tmp_path, profiles):
    home = tmp_path / "home"
    (home / ".ostler").mkdir(parents=True)
    models = {"profiles": profiles, "active": profiles[0]["name"]}
    (home / ".ostler" / "config.json").write_text(json.dumps({"models": models}))
    env = {"HOME": str(home), "OSTLER_HOME": str(home / ".ostler"), "OSTLER_API_KEY": "sk-of-the-first"}
    return load(tmp_path, env), env


@pytest.mark.req("MD-2")
async def test_the_profile_names_it_with_its_own_endpoint_key_and_dialect(tmp_path):
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
    assert [(chunk.tool, chunk.arguments) for chunk in only(chunks, CallChunk)] == [("SysBuiltIn.read", '{"path":"a"}')]
    sent = second.requests[0]
    assert (sent.path, sent.headers["x-api-key"]) == ("/v1/messages", "sk-of-the-second")
    assert "sk-of-the-first" not in str(sent)
    assert "sk-of-the-second" not in str(first.requests)


@pytest.mark.req("MD-2")
@pytest.mark.parametrize(
    ("fallback", "told"), [("nobody", r"no profile .*nobody.*'a', 'b'|nobody"), ("b", "'b', a fallback of 'a', needs")]
)
async def test_a_fallback_that_cannot_be_is_told_at_the_start(tmp_path, fallback, told):
    profiles = [
        {"name": "a", "model": "one", "baseUrl": "http://127.0.0.1:9/v1", "fallback": [fallback]},
        {"name": "b", "baseUrl": "http://127.0.0.1:9/v1"},
    ]
    settings, env = settings_with(tmp_path, profiles)
    with pytest.raises(UsageError, match=told):
        await choose_model(settings, {}, env)


@pytest.mark.req("MD-2", "MD-3")
async def test_a_fallback_without_its_variable_stops_nobody_and_is_told(tmp_path):
    async with ScriptedModelServer(text("x")) as server:
        profiles = [
            {"name": "a", "model": "one", "baseUrl": server.base_url, "fallback": ["b", "c"]},
            {"name": "b", "model": "two", "baseUrl": server.base_url, "apiKey": "{env:UNSET}"},
            {"name": "c", "model": "three", "baseUrl": server.base_url},
        ]
        settings, env = settings_with(tmp_path, profiles)
        choice = await choose_model(settings, {}, env)
        assert words(await collect(choice.make(""))) == "x"
        with pytest.raises(UsageError, match="UNSET, which is not set"):
            choice.make("b")
    assert choice.description.endswith(
        "; fallback c; fallback b skipped: environment variable not set (see `ostler doctor`)"
    )


@pytest.mark.req("MD-7")
async def test_changing_takes_a_profiles_name_or_a_models(tmp_path):
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


async def test_the_longest_reply_is_that_of_whoever_answers(client):
    def most(tokens):
        return ModelSettings(sampling=Sampling(max_tokens=tokens))

    async with ScriptedModelServer(QUOTA) as first, ScriptedModelServer(text("a")) as second:
        model = pair(client(first, settings=most(100)), client(second, settings=most(70)))
        assert model.max_reply_tokens == 100
        await collect(model)
        assert model.max_reply_tokens == 70
    assert second.requests[0].json["max_tokens"] == 70
