"""Limits of a turn: steps, tokens, cost, time; each names itself, and is passed by one reply at most."""

import asyncio

import pytest
from engine_play import Model, Said, script

from ostler.backends.engine.guests.limits import Limits
from ostler.cli.arguments import Parser, add_bounds
from ostler.testing.fake_tool import FakeTool
from ostler.testing.model_server import calls
from ostler.vocabulary.errors import UsageError
from ostler.vocabulary.events import Notice, ToolFinished, UsageReported

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
    assert states == ["planning", "model_generating", "tool_running", "planning", "model_generating", "done"]


@pytest.mark.req("EN-1")
async def test_a_failure_is_a_state_too(stage):
    await stage.open(Model(script(Said(fails="backend"))))
    assert (await stage.turn("go")).reason == "failed"
    states = [event.state for event in stage.events if type(event).__name__ == "StateChanged"]
    assert states == ["planning", "model_generating", "error"]


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
