"""Limits of a turn: steps, tokens, cost, time; each names itself, and is passed by one reply at most."""

import asyncio

import pytest
from engine_play import Model, Said, script

from ostler.backends.engine.internal_agents import InternalAgents
from ostler.backends.engine.plugins.budget import Budget
from ostler.backends.engine.plugins.limits import TurnLimits
from ostler.backends.engine.plugins.plugin import BUILT_IN_AGENTS
from ostler.cli.arguments import Parser, add_limit_options
from ostler.core.errors import UsageError
from ostler.core.events import MessageDone, Notice, ToolFinished, UsageReported
from ostler.models.client_factory import NetworkConfig, make_client
from ostler.models.model_settings import ModelSettings, TokenPrice
from ostler.testing.fake_tool import FakeTool
from ostler.testing.model_server import ScriptedModelServer, calls, text

pytestmark = pytest.mark.req("EN-12")


def counting():
    """A model that calls a tool for ever, each time otherwise, at 100 tokens and ten cents a call."""
    seen = []

    def reply(request):
        seen.append(request)
        return Said("", ("probe", {"subject": str(len(seen))}), cost=0.1).counted(90, 10)

    return reply


@pytest.mark.parametrize(
    ("limits", "named", "most_calls"),
    [
        (TurnLimits(steps=3), "3 steps", 3),
        (TurnLimits(steps=1), "1 step", 1),
        (TurnLimits(tokens=350), "350 tokens", 3),
        (TurnLimits(tokens=1), "1 token", 0),
        (TurnLimits(cost=0.35), "$0.35", 3),
        (TurnLimits(steps=5, cost=0.35, tokens=10_000), "$0.35", 3),
    ],
)
async def test_a_limit_ends_the_turn_and_says_which(harness, limits, named, most_calls):
    model = Model(counting())
    await harness.open(model, [FakeTool("probe")], limits=limits)
    ended = await harness.turn("go")
    assert (ended.reason, ended.limit) == ("limit", named)
    assert len(model.requests) <= most_calls
    assert len(harness.past(ToolFinished)) == len(model.requests)


async def test_a_limit_holds_for_each_turn_anew(harness):
    model = Model(counting())
    await harness.open(model, [FakeTool("probe")], limits=TurnLimits(steps=2))
    await harness.turn("one")
    assert (await harness.turn("two")).limit == "2 steps"
    assert len(model.requests) == 4


async def test_an_unknown_price_is_not_nothing_and_is_said_once(harness):
    model = Model(script(*[Said("", ("probe", {"n": n})).counted(10, 1) for n in range(3)], Said("done")))
    await harness.open(model, [FakeTool("probe")], limits=TurnLimits(cost=0.01))
    assert (await harness.turn("go")).reason == "done"
    assert (await harness.turn("again")).reason == "done"
    (notice,) = harness.past(Notice)
    assert "the price of fake is not known" in notice.text
    assert {usage.cost for usage in harness.past(UsageReported)} == {None}


@pytest.mark.req("EN-1")
async def test_time_ends_a_turn_while_the_model_is_silent(harness):
    silent = Said("Hm")
    silent.pause = asyncio.Event()
    await harness.open(Model(script(silent)), limits=TurnLimits(time=0.05))
    ended = await harness.turn("go")
    assert (ended.reason, ended.limit) == ("limit", "0.05 seconds")


@pytest.mark.req("EN-1")
async def test_time_ends_a_turn_while_a_tool_runs(harness):
    async def forever(arguments, context):
        await asyncio.Event().wait()

    await harness.open(Model(counting()), [FakeTool("probe", forever)], limits=TurnLimits(time=0.05))
    assert (await harness.turn("go")).limit == "0.05 seconds"
    assert [event.result.status for event in harness.past(ToolFinished)] == ["cancelled"]


@pytest.mark.req("EN-1")
async def test_the_states_of_a_turn_can_be_watched(harness):
    model = Model(script(Said("", ("probe", {})), Said("done")))
    await harness.open(model, [FakeTool("probe")])
    await harness.turn("go")
    states = [event.state for event in harness.events if type(event).__name__ == "StateChanged"]
    assert states == ["planning", "model_generating", "tool_running", "planning", "model_generating", "done", "idle"]


@pytest.mark.req("EN-1")
async def test_a_failure_is_a_state_too(harness):
    await harness.open(Model(script(Said(fails="backend"))))
    assert (await harness.turn("go")).reason == "failed"
    states = [event.state for event in harness.events if type(event).__name__ == "StateChanged"]
    assert states == ["planning", "model_generating", "error", "idle"]


@pytest.mark.req("CL-8")
@pytest.mark.parametrize("flag", ["--max-steps", "--max-turns"])
def test_the_command_line_has_limits(ostler, models, flag):
    with models.playing(calls([("list", {})])) as server:
        done = ostler("run", flag, "1", "--base-url", server.base_url, "--model", "scripted", "go")
    assert done.code == 3
    assert "1 step" in done.stdout + done.stderr


@pytest.mark.req("CL-8")
@pytest.mark.parametrize("flag", ["--max-steps", "--max-tokens", "--max-cost", "--max-time"])
@pytest.mark.parametrize("value", ["0", "-1", "nan", "many", ""])
def test_a_limit_that_is_none_is_refused(flag, value):
    parser = Parser()
    add_limit_options(parser)
    with pytest.raises(UsageError, match=flag):
        parser.parse_args([flag, value])


def priced(server, price):
    """A model of a real server whose price is known, or not."""
    return make_client(
        api_kind="openai",
        base_url=server.base_url,
        model="m",
        network=NetworkConfig(environ={}),
        settings=ModelSettings(price=price),
    )


@pytest.mark.req("MD-8")
async def test_a_known_price_stops_the_first_call(harness):
    async with ScriptedModelServer() as server:
        await harness.open(priced(server, TokenPrice(input=1000.0)), limits=TurnLimits(cost=0.001))
        ended = await harness.turn("a long question " * 100)
    assert (ended.reason, ended.limit, server.requests) == ("limit", "$0.001", [])


@pytest.mark.req("MD-8")
async def test_a_turn_that_may_not_ask_names_no_session_either(harness):
    async with ScriptedModelServer() as server:
        named = InternalAgents(BUILT_IN_AGENTS.role, makes_titles=True)
        await harness.open(
            priced(server, TokenPrice(input=1000.0)), limits=TurnLimits(cost=0.001), internal_agents=named
        )
        assert (await harness.turn("a long question " * 100)).reason == "limit"
        await harness.session.aclose()


@pytest.mark.req("MD-8")
async def test_a_known_price_lets_pass_what_it_has_room_for(harness):
    async with ScriptedModelServer(calls([("probe", {})]), text("done")) as server:
        await harness.open(priced(server, TokenPrice(1.0, 2.0)), [FakeTool("probe")], limits=TurnLimits(cost=1.0))
        assert (await harness.turn("go")).reason == "done"
    assert harness.past(Notice) == []


@pytest.mark.req("MD-8")
async def test_an_unknown_price_is_told_before_the_only_call(harness):
    async with ScriptedModelServer(text("done")) as server:
        await harness.open(priced(server, None), limits=TurnLimits(cost=1.0))
        assert (await harness.turn("go")).reason == "done"
    (notice,) = harness.past(Notice)
    assert notice == Notice("warning", "the price of m is not known, so the limit of $1 cannot hold")
    told = [type(envelope.event) for envelope in harness.session.records()]
    assert told.index(Notice) < told.index(MessageDone)


async def test_a_client_that_leaves_the_price_to_its_replies_is_told_of_after_the_only_call(harness):
    await harness.open(Model(script(Said("done").counted(10, 1))), limits=TurnLimits(cost=1.0))
    await harness.turn("go")
    assert [notice.text.partition(",")[0] for notice in harness.past(Notice)] == ["the price of fake is not known"]
    await harness.open(Model(script(Said("done", cost=0.1).counted(10, 1))), limits=TurnLimits(cost=1.0))
    await harness.turn("go")
    assert harness.past(Notice) == []


async def test_what_a_server_does_not_count_is_estimated(harness):
    """Three requests of some 50, 600 and 1200 tokens: no one of them costs two dollars."""
    uncounted = [calls([("probe", {"subject": letter * 2000})]).with_usage(0, 0) for letter in "abc"]
    async with ScriptedModelServer(*uncounted) as server:
        await harness.open(priced(server, TokenPrice(input=1000.0)), [FakeTool("probe")], limits=TurnLimits(cost=2.0))
        assert (await harness.turn("go")).limit == "$2"


async def test_the_budget_of_a_tree_counts_each_reply_once(harness):
    model = Model(counting())
    await harness.open(model, [FakeTool("probe")], budget=Budget(calls=2))
    ended = await harness.turn("go")
    assert (ended.reason, ended.limit, len(harness.past(MessageDone))) == ("limit", "2 steps", 2)
