"""Limits of a turn: steps, tokens, cost, time; each names itself, and is passed by one reply at most."""

import asyncio

import pytest
from engine_play import Model, Said, script

from ostler.backends.engine.guests.budget import Budget
from ostler.backends.engine.guests.guest import BUILT_IN
from ostler.backends.engine.guests.limits import Limits
from ostler.backends.engine.helpers import Helpers
from ostler.cli.arguments import Parser, add_bounds
from ostler.models.make import Network, make_client
from ostler.models.terms import Price, Terms
from ostler.testing.fake_tool import FakeTool
from ostler.testing.model_server import ScriptedModelServer, calls, text
from ostler.vocabulary.errors import UsageError
from ostler.vocabulary.events import MessageDone, Notice, ToolFinished, UsageReported

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
        (Limits(steps=3), "3 steps", 3),
        (Limits(steps=1), "1 step", 1),
        (Limits(tokens=350), "350 tokens", 3),
        (Limits(tokens=1), "1 token", 0),
        (Limits(cost=0.35), "$0.35", 3),
        (Limits(steps=5, cost=0.35, tokens=10_000), "$0.35", 3),
    ],
)
async def test_a_limit_ends_the_turn_and_says_which(stage, limits, named, most_calls):
    model = Model(counting())
    await stage.open(model, [FakeTool("probe")], limits=limits)
    ended = await stage.turn("go")
    assert (ended.reason, ended.limit) == ("limit", named)
    assert len(model.requests) <= most_calls
    assert len(stage.past(ToolFinished)) == len(model.requests)


async def test_a_limit_holds_for_each_turn_anew(stage):
    model = Model(counting())
    await stage.open(model, [FakeTool("probe")], limits=Limits(steps=2))
    await stage.turn("one")
    assert (await stage.turn("two")).limit == "2 steps"
    assert len(model.requests) == 4


async def test_an_unknown_price_is_not_nothing_and_is_said_once(stage):
    model = Model(script(*[Said("", ("probe", {"n": n})).counted(10, 1) for n in range(3)], Said("done")))
    await stage.open(model, [FakeTool("probe")], limits=Limits(cost=0.01))
    assert (await stage.turn("go")).reason == "done"
    assert (await stage.turn("again")).reason == "done"
    (notice,) = stage.past(Notice)
    assert "the price of fake is not known" in notice.text
    assert {usage.cost for usage in stage.past(UsageReported)} == {None}


@pytest.mark.req("EN-1")
async def test_time_ends_a_turn_while_the_model_is_silent(stage):
    silent = Said("Hm")
    silent.pause = asyncio.Event()
    await stage.open(Model(script(silent)), limits=Limits(time=0.05))
    ended = await stage.turn("go")
    assert (ended.reason, ended.limit) == ("limit", "0.05 seconds")


@pytest.mark.req("EN-1")
async def test_time_ends_a_turn_while_a_tool_runs(stage):
    async def forever(arguments, context):
        await asyncio.Event().wait()

    await stage.open(Model(counting()), [FakeTool("probe", forever)], limits=Limits(time=0.05))
    assert (await stage.turn("go")).limit == "0.05 seconds"
    assert [event.result.status for event in stage.past(ToolFinished)] == ["cancelled"]


@pytest.mark.req("EN-1")
async def test_the_states_of_a_turn_can_be_watched(stage):
    model = Model(script(Said("", ("probe", {})), Said("done")))
    await stage.open(model, [FakeTool("probe")])
    await stage.turn("go")
    states = [event.state for event in stage.events if type(event).__name__ == "StateChanged"]
    assert states == ["planning", "model_generating", "tool_running", "planning", "model_generating", "done", "idle"]


@pytest.mark.req("EN-1")
async def test_a_failure_is_a_state_too(stage):
    await stage.open(Model(script(Said(fails="backend"))))
    assert (await stage.turn("go")).reason == "failed"
    states = [event.state for event in stage.events if type(event).__name__ == "StateChanged"]
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
    add_bounds(parser)
    with pytest.raises(UsageError, match=flag):
        parser.parse_args([flag, value])


def priced(server, price):
    """A model of a real server whose price is known, or not."""
    return make_client(
        api_kind="openai", base_url=server.base_url, model="m", network=Network(environ={}), terms=Terms(price=price)
    )


@pytest.mark.req("MD-8")
async def test_a_known_price_stops_the_first_call(stage):
    async with ScriptedModelServer() as server:
        await stage.open(priced(server, Price(input=1000.0)), limits=Limits(cost=0.001))
        ended = await stage.turn("a long question " * 100)
    assert (ended.reason, ended.limit, server.requests) == ("limit", "$0.001", [])


@pytest.mark.req("MD-8")
async def test_a_turn_that_may_not_ask_names_no_session_either(stage):
    async with ScriptedModelServer() as server:
        named = Helpers(BUILT_IN.role, names=True)
        await stage.open(priced(server, Price(input=1000.0)), limits=Limits(cost=0.001), helpers=named)
        assert (await stage.turn("a long question " * 100)).reason == "limit"
        await stage.session.aclose()


@pytest.mark.req("MD-8")
async def test_a_known_price_lets_pass_what_it_has_room_for(stage):
    async with ScriptedModelServer(calls([("probe", {})]), text("done")) as server:
        await stage.open(priced(server, Price(1.0, 2.0)), [FakeTool("probe")], limits=Limits(cost=1.0))
        assert (await stage.turn("go")).reason == "done"
    assert stage.past(Notice) == []


@pytest.mark.req("MD-8")
async def test_an_unknown_price_is_told_before_the_only_call(stage):
    async with ScriptedModelServer(text("done")) as server:
        await stage.open(priced(server, None), limits=Limits(cost=1.0))
        assert (await stage.turn("go")).reason == "done"
    (notice,) = stage.past(Notice)
    assert notice == Notice("warning", "the price of m is not known, so the limit of $1 cannot hold")
    told = [type(envelope.event) for envelope in stage.session.records()]
    assert told.index(Notice) < told.index(MessageDone)


async def test_a_client_that_leaves_the_price_to_its_replies_is_told_of_after_the_only_call(stage):
    await stage.open(Model(script(Said("done").counted(10, 1))), limits=Limits(cost=1.0))
    await stage.turn("go")
    assert [notice.text.partition(",")[0] for notice in stage.past(Notice)] == ["the price of fake is not known"]
    await stage.open(Model(script(Said("done", cost=0.1).counted(10, 1))), limits=Limits(cost=1.0))
    await stage.turn("go")
    assert stage.past(Notice) == []


async def test_what_a_server_does_not_count_is_estimated(stage):
    """Three requests of some 50, 600 and 1200 tokens: no one of them costs two dollars."""
    uncounted = [calls([("probe", {"subject": letter * 2000})]).counted(0, 0) for letter in "abc"]
    async with ScriptedModelServer(*uncounted) as server:
        await stage.open(priced(server, Price(input=1000.0)), [FakeTool("probe")], limits=Limits(cost=2.0))
        assert (await stage.turn("go")).limit == "$2"


async def test_the_budget_of_a_tree_counts_each_reply_once(stage):
    model = Model(counting())
    await stage.open(model, [FakeTool("probe")], budget=Budget(calls=2))
    ended = await stage.turn("go")
    assert (ended.reason, ended.limit, len(stage.past(MessageDone))) == ("limit", "2 steps", 2)
