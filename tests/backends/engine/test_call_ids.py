"""A call runs however often its id comes again: servers count anew, and a journal does not forget."""

import json

import pytest
from engine_play import Model, Play, Said, script

from ostler.core.events import ToolCalled, ToolFinished, TurnStarted
from ostler.core.sessions import Compact, Revert
from ostler.core.tools import ToolCall
from ostler.journal.memory_journal import MemoryJournal
from ostler.models.model_types import CallChunk, ToolResultsMessage
from ostler.testing.fake_tool import FakeTool

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
    results = [
        one for said in model.requests[-1].history if isinstance(said, ToolResultsMessage) for one in said.results
    ]
    return [result.for_model[:8] for result in results]


def no_id_came_twice(harness):
    ids = [event.result.call_id for event in harness.past(ToolFinished)]
    return len(set(ids)) == len(ids) and "" not in ids


@pytest.mark.parametrize("call_id", ["call_0", ""])
async def test_after_an_undo(harness, call_id):
    ran = []
    model = Repeating(script(probe(1), Said("one"), probe(2), Said("two")), call_id)
    await harness.open(model, [tool(ran)])
    await harness.turn("first")
    begun = next(e.seq for e in harness.session.records() if isinstance(e.event, TurnStarted))
    assert await harness.session.apply(Revert(begun - 1))
    await harness.turn("second")
    assert ran == [1, 2]
    assert heard(model) == ["result 2"]
    assert no_id_came_twice(harness)


@pytest.mark.parametrize("call_id", ["call_0", ""])
async def test_after_a_summary(harness, call_id):
    ran = []

    def reply(request):
        if request.system.startswith("You shorten"):
            return Said("notes")
        return Said("done") if isinstance(request.history[-1], ToolResultsMessage) else probe(len(ran))

    model = Repeating(reply, call_id)
    await harness.open(model, [tool(ran)])
    for number in range(3):
        await harness.turn(f"turn {number}")
        assert await harness.session.apply(Compact())
    await harness.turn("last")
    assert ran == [0, 1, 2, 3]
    assert heard(model)[-1] == "result 3"
    assert no_id_came_twice(harness)


@pytest.mark.parametrize("call_id", ["call_0", ""])
async def test_side_by_side_in_one_message(harness, call_id):
    ran = []
    both = Said("", ("probe", {"n": 1}), ("probe", {"n": 2}))
    model = Repeating(script(both, Said("done")), call_id)
    await harness.open(model, [tool(ran)])
    await harness.turn("both")
    assert sorted(ran) == [1, 2]
    assert heard(model) == ["result 1", "result 2"]
    assert no_id_came_twice(harness)


async def test_in_a_session_that_is_resumed(harness, tmp_path):
    ran, journal = [], MemoryJournal("session-1")
    first = await Play(str(tmp_path)).open(
        Repeating(script(probe(1), Said("one")), "mine"), [tool(ran)], journal=journal
    )
    await first.turn("first")
    await first.session.aclose()
    again = MemoryJournal("session-1")
    for envelope in journal.records():
        again.append(envelope)
    model = Repeating(script(probe(2), Said("two")), "mine")
    await harness.open(model, [tool(ran)], journal=again)
    await harness.turn("second")
    assert ran == [1, 2]
    assert heard(model) == ["result 1", "result 2"]
    assert no_id_came_twice(harness)


async def test_an_id_that_is_new_stays_as_it_is(harness):
    await harness.open(Repeating(script(probe(1), Said("one")), "toolu_01"), [tool([])])
    await harness.turn("first")
    assert [event.call.id for event in harness.past(ToolCalled)] == ["toolu_01"]


async def test_a_result_that_was_taken_back_answers_no_call(harness):
    ran = []
    await harness.open(Model(script(Said("hi"))), [tool(ran)])
    before = harness.session.records()[-1].seq
    for number in (1, 1, 2):
        if number == 2:
            assert await harness.session.apply(Revert(before))
        call = ToolCall("again", "probe", {"n": number}, origin="person", raw=json.dumps({"n": number}))
        assert (await harness.session.call(call)).for_model.startswith(f"result {number}")
    assert ran == [1, 2]


@pytest.mark.req("EN-2")
async def test_the_very_same_call_again_in_a_turn_runs_again(harness):
    ran = []
    model = Repeating(script(probe(1), probe(1), probe(2), Said("done")), "mine")
    await harness.open(model, [tool(ran)])
    await harness.turn("go")
    assert ran == [1, 1, 2]
    assert heard(model) == ["result 1", "result 1", "result 2"]
    assert no_id_came_twice(harness)


@pytest.mark.parametrize("call_id", ["check-9", "person-1", "task-p", "a\nb", "x" * 10_000, "\u202e"])
async def test_an_id_that_is_not_a_models_to_give_is_not_taken(harness, call_id):
    ran = []
    model = Repeating(script(probe(1), Said("done")), call_id)
    await harness.open(model, [tool(ran)])
    await harness.turn("go")
    assert (ran, heard(model)) == ([1], ["result 1"])
    assert [event.call.id.startswith("call_") for event in harness.past(ToolCalled)] == [True]
