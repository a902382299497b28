"""Limits of a turn: steps, tokens, cost and time; exceeded by one reply at most, and named in the result."""

import asyncio

import pytest
from engine_harness import Model, Reply, script

from ostler.backends.engine.internal_agents import InternalAgents
from ostler.backends.engine.plugins.budget import Budget
from ostler.backends.engine.plugins.limits import TurnLimits
from ostler.backends.engine.plugins.plugin import BUILT_IN_AGENTS
from ostler.cli.arguments import Parser, add_turn_limits
from ostler.core.errors import UsageError
from ostler.core.events import MessageDone, Notice, ToolFinished, UsageReported
from ostler.models.client_factory import NetworkConfig, make_client
from ostler.models.model_settings import ModelSettings
from ostler.models.model_types import TokenPrice
from ostler.testing.fake_tool import FakeTool
from ostler.testing.model_server import ScriptedModelServer, calls, text

pytestmark = pytest.mark.req("EN-12")


def endless_calls():
    """Return a reply function that makes a different call each time, at 100 tokens and ten cents."""
    seen = []

    def reply(request):
        seen.append(request)
        return Reply("", ("probe", {"subject": str(len(seen))}), cost=0.1).counted(90, 10)

    return reply


@pytest.mark.parametrize(
    ("limits", "limit", "max_calls"),
    [
        (TurnLimits(steps=3), "3 steps", 3),
        (TurnLimits(steps=1), "1 step", 1),
        (TurnLimits(tokens=350), "350 tokens", 3),
        (TurnLimits(tokens=1), "1 token", 0),
        (TurnLimits(cost=0.35), "$0.35", 3),
        (TurnLimits(steps=5, cost=0.35, tokens=10_000), "$0.35", 3),
    ],
)
async def test_limit_ends_the_turn_and_is_named(harness, limits, limit, max_calls):
    model = Model(endless_calls())
    await harness.open(model, [FakeTool("probe")], limits=limits)
    ended = await harness.turn("go")
    assert (ended.reason, ended.limit) == ("limit", limit)
    assert len(model.requests) <= max_calls
    assert len(harness.events_of(ToolFinished)) == len(model.requests)


async def test_limit_applies_to_each_turn(harness):
    model = Model(endless_calls())
    await harness.open(model, [FakeTool("probe")], limits=TurnLimits(steps=2))
    await harness.turn("one")
    assert (await harness.turn("two")).limit == "2 steps"
    assert len(model.requests) == 4


async def test_unknown_price_is_reported_once(harness):
    model = Model(script(*[Reply("", ("probe", {"n": n})).counted(10, 1) for n in range(3)], Reply("done")))
    await harness.open(model, [FakeTool("probe")], limits=TurnLimits(cost=0.01))
    assert (await harness.turn("go")).reason == "done"
    assert (await harness.turn("again")).reason == "done"
    (notice,) = harness.events_of(Notice)
    assert "set a price for fake in its profile" in notice.text
    assert {usage.cost for usage in harness.events_of(UsageReported)} == {None}


@pytest.mark.req("EN-1")
async def test_time_limit_while_the_model_is_silent(harness):
    silent = Reply("Hm")
    silent.pause = asyncio.Event()
    await harness.open(Model(script(silent)), limits=TurnLimits(time=0.05))
    ended = await harness.turn("go")
    assert (ended.reason, ended.limit) == ("limit", "0.05 seconds")


@pytest.mark.req("EN-1")
async def test_time_limit_while_a_tool_runs(harness):
    async def forever(arguments, context):
        await asyncio.Event().wait()

    await harness.open(Model(endless_calls()), [FakeTool("probe", forever)], limits=TurnLimits(time=0.05))
    assert (await harness.turn("go")).limit == "0.05 seconds"
    assert [event.result.status for event in harness.events_of(ToolFinished)] == ["cancelled"]


@pytest.mark.req("EN-1")
async def test_states_of_a_turn(harness):
    model = Model(script(Reply("", ("probe", {})), Reply("done")))
    await harness.open(model, [FakeTool("probe")])
    await harness.turn("go")
    states = [event.state for event in harness.events if type(event).__name__ == "StateChanged"]
    assert states == ["planning", "model_generating", "tool_running", "planning", "model_generating", "done", "idle"]


@pytest.mark.req("EN-1")
async def test_states_of_a_failed_turn(harness):
    await harness.open(Model(script(Reply(fails="backend"))))
    assert (await harness.turn("go")).reason == "failed"
    states = [event.state for event in harness.events if type(event).__name__ == "StateChanged"]
    assert states == ["planning", "model_generating", "error", "idle"]


@pytest.mark.req("CL-8")
@pytest.mark.parametrize("flag", ["--max-steps", "--max-turns"])
def test_command_line_limits(ostler, models, flag):
    with models.playing(calls([("list", {})])) as server:
        done = ostler("run", flag, "1", "--base-url", server.base_url, "--model", "scripted", "go")
    assert done.code == 3
    assert "1 step" in done.stdout + done.stderr


@pytest.mark.req("CL-8")
@pytest.mark.parametrize("flag", ["--max-steps", "--max-tokens", "--max-cost", "--max-time"])
@pytest.mark.parametrize("value", ["0", "-1", "nan", "many", ""])
def test_invalid_limit_is_refused(flag, value):
    parser = Parser()
    add_turn_limits(parser)
    with pytest.raises(UsageError, match=flag):
        parser.parse_args([flag, value])


def client_with_price(server, price):
    """Return a client of a real server with this price."""
    return make_client(
        api_kind="openai",
        base_url=server.base_url,
        model="m",
        network=NetworkConfig(environ={}),
        settings=ModelSettings(price=price),
    )


@pytest.mark.req("MD-8")
async def test_known_price_prevents_the_first_call(harness):
    async with ScriptedModelServer() as server:
        await harness.open(client_with_price(server, TokenPrice(input=1000.0)), limits=TurnLimits(cost=0.001))
        ended = await harness.turn("a long question " * 100)
    assert (ended.reason, ended.limit, server.requests) == ("limit", "$0.001", [])


@pytest.mark.req("MD-8")
async def test_turn_over_the_limit_makes_no_title(harness):
    async with ScriptedModelServer() as server:
        agents = InternalAgents(BUILT_IN_AGENTS.role, makes_titles=True)
        await harness.open(
            client_with_price(server, TokenPrice(input=1000.0)), limits=TurnLimits(cost=0.001), internal_agents=agents
        )
        assert (await harness.turn("a long question " * 100)).reason == "limit"
        await harness.session.aclose()


@pytest.mark.req("MD-8")
async def test_known_price_allows_calls_within_the_limit(harness):
    async with ScriptedModelServer(calls([("probe", {})]), text("done")) as server:
        await harness.open(
            client_with_price(server, TokenPrice(1.0, 2.0)), [FakeTool("probe")], limits=TurnLimits(cost=1.0)
        )
        assert (await harness.turn("go")).reason == "done"
    assert harness.events_of(Notice) == []


@pytest.mark.req("MD-8")
async def test_unknown_price_is_reported_before_the_call(harness):
    async with ScriptedModelServer(text("done")) as server:
        await harness.open(client_with_price(server, None), limits=TurnLimits(cost=1.0))
        assert (await harness.turn("go")).reason == "done"
    (notice,) = harness.events_of(Notice)
    message = "set a price for m in its profile: without it the cost limit of $1 cannot be enforced"
    assert notice == Notice("warning", message)
    types = [type(envelope.event) for envelope in harness.session.records()]
    assert types.index(Notice) < types.index(MessageDone)


async def test_price_only_in_replies_is_reported_after_the_call(harness):
    await harness.open(Model(script(Reply("done").counted(10, 1))), limits=TurnLimits(cost=1.0))
    await harness.turn("go")
    assert [notice.text.partition(":")[0] for notice in harness.events_of(Notice)] == [
        "set a price for fake in its profile"
    ]
    await harness.open(Model(script(Reply("done", cost=0.1).counted(10, 1))), limits=TurnLimits(cost=1.0))
    await harness.turn("go")
    assert harness.events_of(Notice) == []


async def test_unreported_usage_is_estimated(harness):
    """Three requests of about 50, 600 and 1200 tokens; none of them alone costs two dollars."""
    uncounted = [calls([("probe", {"subject": letter * 2000})]).with_usage(0, 0) for letter in "abc"]
    async with ScriptedModelServer(*uncounted) as server:
        await harness.open(
            client_with_price(server, TokenPrice(input=1000.0)), [FakeTool("probe")], limits=TurnLimits(cost=2.0)
        )
        assert (await harness.turn("go")).limit == "$2"


async def test_shared_budget_counts_each_reply_once(harness):
    model = Model(endless_calls())
    await harness.open(model, [FakeTool("probe")], budget=Budget(calls=2))
    ended = await harness.turn("go")
    assert (ended.reason, ended.limit, len(harness.events_of(MessageDone))) == ("limit", "2 steps", 2)
