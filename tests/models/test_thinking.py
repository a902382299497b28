"""How much a model shall reason, told in each API's own way, and what a server that cannot be told teaches."""

import pytest
from model_talk import ask, collect, words

from ostler.app.model_choice import make_http_client
from ostler.core.message import CallPart, Message, ThoughtPart
from ostler.core.prompt import TextContent
from ostler.core.tools import ToolCall, ToolResult
from ostler.models.model_settings import Sampling
from ostler.models.model_types import AssistantMessage, ToolResultsMessage, UserMessage
from ostler.settings.model_profiles import Profile
from ostler.testing.model_server import ScriptedModelServer, status, text


def refusal(message):
    return status(400, {"error": {"message": message, "type": "invalid_request_error"}})


async def sent(*replies, kind="openai", request=None, **values):
    """The bodies of all requests that one question came to."""
    async with ScriptedModelServer(*replies) as server:
        profile = Profile(name="p", model="m", base_url=server.base_url, api_kind=kind, **values)
        assert words(await collect(make_http_client(profile), request)) == "ok"
    return [recorded.json for recorded in server.requests]


@pytest.mark.req("MD-2")
@pytest.mark.parametrize(
    ("thinking", "effort", "switch"), [("off", "none", False), ("low", "low", True), ("high", "high", True)]
)
async def test_chat_completions_take_a_word_and_a_switch(thinking, effort, switch):
    [body] = await sent(text("ok"), thinking=thinking)
    assert body["reasoning_effort"] == effort
    assert body["chat_template_kwargs"] == {"enable_thinking": switch, "thinking": switch}


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
async def test_nothing_is_said_of_it_unless_it_is_asked_for(kind):
    [body] = await sent(text("ok"), kind=kind)
    assert not {"reasoning_effort", "chat_template_kwargs", "thinking", "output_config"} & body.keys()


async def test_a_person_may_add_to_the_switch():
    [body] = await sent(text("ok"), thinking="low", options={"chat_template_kwargs": {"style": "short"}})
    assert body["chat_template_kwargs"] == {"style": "short", "enable_thinking": True, "thinking": True}


async def test_a_server_that_knows_neither_is_asked_without():
    bodies = await sent(
        refusal("Unrecognized request argument supplied: chat_template_kwargs"),
        refusal("Unsupported value: 'reasoning_effort' does not support 'none' with this model."),
        text("ok"),
        thinking="off",
    )
    told = [sorted({"reasoning_effort", "chat_template_kwargs"} & body.keys()) for body in bodies]
    assert told == [["chat_template_kwargs", "reasoning_effort"], ["reasoning_effort"], []]


def test_a_request_that_says_it_itself_is_not_changed():
    assert Sampling(thinking="high").apply_defaults(ask(thinking="off")).thinking == "off"
    assert Sampling(thinking="high").apply_defaults(ask()).thinking == "high"


@pytest.mark.req("MD-2")
@pytest.mark.parametrize(
    ("thinking", "most", "budget"),
    [("low", None, 2048), ("medium", None, 8192), ("high", None, 16384), ("high", 4096, 3072), ("high", 2047, None)],
)
async def test_messages_take_a_budget_below_the_replys_own(thinking, most, budget):
    [body] = await sent(text("ok"), kind="anthropic", thinking=thinking, max_output_tokens=most, temperature=0.5)
    assert body.get("thinking") == (budget and {"type": "enabled", "budget_tokens": budget})
    assert ("temperature" in body) == (budget is None)
    assert budget is None or budget < body["max_tokens"]


async def test_off_says_nothing_to_messages():
    [body] = await sent(text("ok"), kind="anthropic", thinking="off", temperature=0.5)
    assert "thinking" not in body
    assert body["temperature"] == 0.5


async def test_models_that_settle_it_themselves_get_a_word_and_others_nothing():
    bodies = await sent(
        refusal('"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive".'),
        refusal("output_config: effort is not supported"),
        text("ok"),
        kind="anthropic",
        thinking="medium",
    )
    assert [body.get("thinking", {}).get("type") for body in bodies] == ["enabled", "adaptive", None]
    assert bodies[1]["output_config"] == {"effort": "medium"}


def loop(*parts):
    call = CallPart(ToolCall("c1", "read", {"path": "a"}))
    return (
        UserMessage((TextContent("go"),)),
        AssistantMessage(Message("m1", (*parts, call), model="m")),
        ToolResultsMessage((ToolResult("c1", "ok", "b"),)),
    )


@pytest.mark.parametrize(
    ("history", "thinks"),
    [
        (loop(ThoughtPart("hm", "sealed")), True),
        (loop(), False),
        (loop(ThoughtPart("not sealed")), False),
        (
            (
                *loop(),
                AssistantMessage(Message("m2", (TextContent("done"),), model="m")),
                UserMessage((TextContent("more"),)),
            ),
            True,
        ),
    ],
    ids=["sealed", "switched on within a turn", "another's thought", "a new turn"],
)
async def test_messages_never_think_on_where_a_turn_began_without(history, thinks):
    [body] = await sent(text("ok"), kind="anthropic", thinking="low", request=ask(history=history))
    assert ("thinking" in body) == thinks
