"""A call runs however often its id comes again: servers count anew, and a journal does not forget."""

import json

import pytest
from engine_play import Model, Play, Said, script

from ostler.journal.memory import MemoryJournal
from ostler.models.words import CallChunk, ToolsSaid
from ostler.testing.fake_tool import FakeTool
from ostler.vocabulary.events import ToolCalled, ToolFinished, TurnStarted
from ostler.vocabulary.sessions import Compact, Revert
from ostler.vocabulary.tools import ToolCall

pytestmark = pytest.mark.req("EN-8")


class Repeating(Model):
    """Gives every call one and the same id."""

    def __init__(self, reply, call_id):
        super().__init__(reply)
        self._call_id = call_id

    async def stream(self, request):
        async for chunk in super().stream(request):
            yield CallChunk(self._call_id, chunk.tool, chunk.arguments) if isinstance(chunk, CallChunk) else chunk


def probe(number):
    return Said("", ("probe", {"n": number}))


def tool(ran):
    async def run(arguments, context):
        ran.append(arguments["n"])
        return f"result {arguments['n']} " + "word " * 200

    return FakeTool("probe", run)


def heard(model):
    """The results that the last request told of, by their beginnings."""
    results = [one for said in model.requests[-1].history if isinstance(said, ToolsSaid) for one in said.results]
    return [result.for_model[:8] for result in results]


def no_id_came_twice(stage):
    ids = [event.result.call_id for event in stage.past(ToolFinished)]
    return len(set(ids)) == len(ids) and "" not in ids


@pytest.mark.parametrize("call_id", ["call_0", ""])
async def test_after_an_undo(stage, call_id):
    ran = []
    model = Repeating(script(probe(1), Said("one"), probe(2), Said("two")), call_id)
    await stage.open(model, [tool(ran)])
    await stage.turn("first")
    begun = next(e.seq for e in stage.session.records() if isinstance(e.event, TurnStarted))
    assert await stage.session.apply(Revert(begun - 1))
    await stage.turn("second")
    assert ran == [1, 2]
    assert heard(model) == ["result 2"]
    assert no_id_came_twice(stage)


@pytest.mark.parametrize("call_id", ["call_0", ""])
async def test_after_a_summary(stage, call_id):
    ran = []

    def reply(request):
        if request.system.startswith("You shorten"):
            return Said("notes")
        return Said("done") if isinstance(request.history[-1], ToolsSaid) else probe(len(ran))

    model = Repeating(reply, call_id)
    await stage.open(model, [tool(ran)])
    for number in range(3):
        await stage.turn(f"turn {number}")
        assert await stage.session.apply(Compact())
    await stage.turn("last")
    assert ran == [0, 1, 2, 3]
    assert heard(model)[-1] == "result 3"
    assert no_id_came_twice(stage)


@pytest.mark.parametrize("call_id", ["call_0", ""])
async def test_side_by_side_in_one_message(stage, call_id):
    ran = []
    both = Said("", ("probe", {"n": 1}), ("probe", {"n": 2}))
    model = Repeating(script(both, Said("done")), call_id)
    await stage.open(model, [tool(ran)])
    await stage.turn("both")
    assert sorted(ran) == [1, 2]
    assert heard(model) == ["result 1", "result 2"]
    assert no_id_came_twice(stage)


async def test_in_a_session_that_is_resumed(stage, tmp_path):
    ran, journal = [], MemoryJournal("session-1")
    first = await Play(str(tmp_path)).open(
        Repeating(script(probe(1), Said("one")), "mine"), [tool(ran)], journal=journal
    )
    await first.turn("first")
    await first.session.aclose()
    again = MemoryJournal("session-1")
    for envelope in journal.past():
        again.append(envelope)
    model = Repeating(script(probe(2), Said("two")), "mine")
    await stage.open(model, [tool(ran)], journal=again)
    await stage.turn("second")
    assert ran == [1, 2]
    assert heard(model) == ["result 1", "result 2"]
    assert no_id_came_twice(stage)


async def test_an_id_that_is_new_stays_as_it_is(stage):
    await stage.open(Repeating(script(probe(1), Said("one")), "toolu_01"), [tool([])])
    await stage.turn("first")
    assert [event.call.id for event in stage.past(ToolCalled)] == ["toolu_01"]


async def test_a_result_that_was_taken_back_answers_no_call(stage):
    ran = []
    await stage.open(Model(script(Said("hi"))), [tool(ran)])
    before = stage.session.records()[-1].seq
    for number in (1, 1, 2):
        if number == 2:
            assert await stage.session.apply(Revert(before))
        call = ToolCall("again", "probe", {"n": number}, origin="person", raw=json.dumps({"n": number}))
        assert (await stage.session.call(call)).for_model.startswith(f"result {number}")
    assert ran == [1, 2]


@pytest.mark.req("EN-2")
async def test_the_very_same_call_again_in_a_turn_runs_again(stage):
    ran = []
    model = Repeating(script(probe(1), probe(1), probe(2), Said("done")), "mine")
    await stage.open(model, [tool(ran)])
    await stage.turn("go")
    assert ran == [1, 1, 2]
    assert heard(model) == ["result 1", "result 1", "result 2"]
    assert no_id_came_twice(stage)


@pytest.mark.parametrize("call_id", ["check-9", "person-1", "task-p", "a\nb", "x" * 10_000, "\u202e"])
async def test_an_id_that_is_not_a_models_to_give_is_not_taken(stage, call_id):
    ran = []
    model = Repeating(script(probe(1), Said("done")), call_id)
    await stage.open(model, [tool(ran)])
    await stage.turn("go")
    assert (ran, heard(model)) == ([1], ["result 1"])
    assert [event.call.id.startswith("call_") for event in stage.past(ToolCalled)] == [True]
