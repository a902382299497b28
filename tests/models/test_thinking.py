"""Reasoning effort in the form of each API, and the fallback for servers that reject it."""

import pytest
from model_helpers import collect, make_request, text_of

from ostler.core.message import CallPart, Message, ThoughtPart
from ostler.core.prompt import TextContent
from ostler.core.tools import ToolCall, ToolResult
from ostler.models.model_choice import make_http_client
from ostler.models.model_settings import Sampling
from ostler.models.model_types import AssistantMessage, ToolResultsMessage, UserMessage
from ostler.settings.model_profiles import Profile
from ostler.testing.model_server import ScriptedModelServer, status, text


def rejection(message):
    return status(400, {"error": {"message": message, "type": "invalid_request_error"}})


async def sent_bodies(*replies, kind="openai", request=None, **values):
    """Return the bodies of all requests for one reply."""
    async with ScriptedModelServer(*replies) as server:
        profile = Profile(name="p", model="m", base_url=server.base_url, api_kind=kind, **values)
        assert text_of(await collect(make_http_client(profile), request)) == "ok"
    return [recorded.json for recorded in server.requests]


@pytest.mark.req("MD-2")
@pytest.mark.parametrize(
    ("thinking", "effort", "switch"), [("off", "none", False), ("low", "low", True), ("high", "high", True)]
)
async def test_chat_completions_get_effort_and_switch(thinking, effort, switch):
    [body] = await sent_bodies(text("ok"), thinking=thinking)
    assert body["reasoning_effort"] == effort
    assert body["chat_template_kwargs"] == {"enable_thinking": switch, "thinking": switch}


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
async def test_no_reasoning_parameters_by_default(kind):
    [body] = await sent_bodies(text("ok"), kind=kind)
    assert not {"reasoning_effort", "chat_template_kwargs", "thinking", "output_config"} & body.keys()


async def test_user_options_are_merged_into_the_switch():
    [body] = await sent_bodies(text("ok"), thinking="low", options={"chat_template_kwargs": {"style": "short"}})
    assert body["chat_template_kwargs"] == {"style": "short", "enable_thinking": True, "thinking": True}


async def test_rejected_reasoning_parameters_are_omitted():
    bodies = await sent_bodies(
        rejection("Unrecognized request argument supplied: chat_template_kwargs"),
        rejection("Unsupported value: 'reasoning_effort' does not support 'none' with this model."),
        text("ok"),
        thinking="off",
    )
    sent_names = [sorted({"reasoning_effort", "chat_template_kwargs"} & body.keys()) for body in bodies]
    assert sent_names == [["chat_template_kwargs", "reasoning_effort"], ["reasoning_effort"], []]


def test_request_keeps_its_own_effort():
    assert Sampling(thinking="high").apply_defaults(make_request(thinking="off")).thinking == "off"
    assert Sampling(thinking="high").apply_defaults(make_request()).thinking == "high"


@pytest.mark.req("MD-2")
@pytest.mark.parametrize(
    ("thinking", "max_tokens", "budget"),
    [("low", None, 2048), ("medium", None, 8192), ("high", None, 16384), ("high", 4096, 3072), ("high", 2047, None)],
)
async def test_budget_is_below_the_reply_limit(thinking, max_tokens, budget):
    [body] = await sent_bodies(
        text("ok"), kind="anthropic", thinking=thinking, max_output_tokens=max_tokens, temperature=0.5
    )
    assert body.get("thinking") == (budget and {"type": "enabled", "budget_tokens": budget})
    assert ("temperature" in body) == (budget is None)
    assert budget is None or budget < body["max_tokens"]


async def test_off_sends_no_thinking_parameter():
    [body] = await sent_bodies(text("ok"), kind="anthropic", thinking="off", temperature=0.5)
    assert "thinking" not in body
    assert body["temperature"] == 0.5


async def test_rejected_budget_becomes_adaptive_then_none():
    bodies = await sent_bodies(
        rejection('"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive".'),
        rejection("output_config: effort is not supported"),
        text("ok"),
        kind="anthropic",
        thinking="medium",
    )
    assert [body.get("thinking", {}).get("type") for body in bodies] == ["enabled", "adaptive", None]
    assert bodies[1]["output_config"] == {"effort": "medium"}


def tool_turn(*parts):
    call = CallPart(ToolCall("c1", "read", {"path": "a"}))
    return (
        UserMessage((TextContent("go"),)),
        AssistantMessage(Message("m1", (*parts, call), model="m")),
        ToolResultsMessage((ToolResult("c1", "ok", "b"),)),
    )


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        (tool_turn(ThoughtPart("hm", "signed")), True),
        (tool_turn(), False),
        (tool_turn(ThoughtPart("not signed")), False),
        (
            (
                *tool_turn(),
                AssistantMessage(Message("m2", (TextContent("done"),), model="m")),
                UserMessage((TextContent("more"),)),
            ),
            True,
        ),
    ],
    ids=["signed", "enabled during a turn", "unsigned thought", "a new turn"],
)
async def test_no_thinking_in_a_turn_that_started_without(history, expected):
    [body] = await sent_bodies(text("ok"), kind="anthropic", thinking="low", request=make_request(history=history))
    assert ("thinking" in body) == expected
