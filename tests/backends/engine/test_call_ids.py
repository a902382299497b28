"""A call runs even if its id was used before: servers reuse ids, and journals are permanent."""

import json

import pytest
from engine_harness import EngineHarness, Model, Reply, script

from ostler.core.events import ToolCalled, ToolFinished, TurnStarted
from ostler.core.sessions import Compact, Revert
from ostler.core.tools import ToolCall
from ostler.journal.memory_journal import MemoryJournal
from ostler.models.model_types import CallChunk, ToolResultsMessage
from ostler.testing.fake_tool import FakeTool

pytestmark = pytest.mark.req("EN-8")


class FixedIdModel(Model):
    """Gives every call the same id."""

    def __init__(self, reply, call_id):
        super().__init__(reply)
        self._call_id = call_id

    async def stream(self, request):
        async for chunk in super().stream(request):
            yield CallChunk(self._call_id, chunk.tool, chunk.arguments) if isinstance(chunk, CallChunk) else chunk


def probe(number):
    return Reply("", ("probe", {"n": number}))


def tool(runs):
    async def run(arguments, context):
        runs.append(arguments["n"])
        return f"result {arguments['n']} " + "word " * 200

    return FakeTool("probe", run)


def last_results(model):
    """Return the beginnings of the results in the last request."""
    results = [
        entry
        for message in model.requests[-1].history
        if isinstance(message, ToolResultsMessage)
        for entry in message.results
    ]
    return [result.for_model[:8] for result in results]


def ids_are_unique(harness):
    ids = [event.result.call_id for event in harness.events_of(ToolFinished)]
    return len(set(ids)) == len(ids) and "" not in ids


@pytest.mark.parametrize("call_id", ["call_0", ""])
async def test_id_reused_after_a_revert(harness, call_id):
    runs = []
    model = FixedIdModel(script(probe(1), Reply("one"), probe(2), Reply("two")), call_id)
    await harness.open(model, [tool(runs)])
    await harness.turn("first")
    start = next(e.seq for e in harness.session.records() if isinstance(e.event, TurnStarted))
    assert await harness.session.apply(Revert(start - 1))
    await harness.turn("second")
    assert runs == [1, 2]
    assert last_results(model) == ["result 2"]
    assert ids_are_unique(harness)


@pytest.mark.parametrize("call_id", ["call_0", ""])
async def test_id_reused_after_a_compaction(harness, call_id):
    runs = []

    def reply(request):
        if request.system.startswith("You shorten"):
            return Reply("notes")
        return Reply("done") if isinstance(request.history[-1], ToolResultsMessage) else probe(len(runs))

    model = FixedIdModel(reply, call_id)
    await harness.open(model, [tool(runs)])
    for number in range(3):
        await harness.turn(f"turn {number}")
        assert await harness.session.apply(Compact())
    await harness.turn("last")
    assert runs == [0, 1, 2, 3]
    assert last_results(model)[-1] == "result 3"
    assert ids_are_unique(harness)


@pytest.mark.parametrize("call_id", ["call_0", ""])
async def test_id_used_twice_in_one_message(harness, call_id):
    runs = []
    both = Reply("", ("probe", {"n": 1}), ("probe", {"n": 2}))
    model = FixedIdModel(script(both, Reply("done")), call_id)
    await harness.open(model, [tool(runs)])
    await harness.turn("both")
    assert sorted(runs) == [1, 2]
    assert last_results(model) == ["result 1", "result 2"]
    assert ids_are_unique(harness)


async def test_id_reused_in_a_resumed_session(harness, tmp_path):
    runs, journal = [], MemoryJournal("session-1")
    first = await EngineHarness(str(tmp_path)).open(
        FixedIdModel(script(probe(1), Reply("one")), "mine"), [tool(runs)], journal=journal
    )
    await first.turn("first")
    await first.session.aclose()
    copy = MemoryJournal("session-1")
    for envelope in journal.records():
        copy.append(envelope)
    model = FixedIdModel(script(probe(2), Reply("two")), "mine")
    await harness.open(model, [tool(runs)], journal=copy)
    await harness.turn("second")
    assert runs == [1, 2]
    assert last_results(model) == ["result 1", "result 2"]
    assert ids_are_unique(harness)


async def test_new_id_is_kept(harness):
    await harness.open(FixedIdModel(script(probe(1), Reply("one")), "toolu_01"), [tool([])])
    await harness.turn("first")
    assert [event.call.id for event in harness.events_of(ToolCalled)] == ["toolu_01"]


async def test_reverted_result_is_not_reused(harness):
    runs = []
    await harness.open(Model(script(Reply("hi"))), [tool(runs)])
    before = harness.session.records()[-1].seq
    for number in (1, 1, 2):
        if number == 2:
            assert await harness.session.apply(Revert(before))
        call = ToolCall("again", "probe", {"n": number}, origin="person", raw=json.dumps({"n": number}))
        assert (await harness.session.call(call)).for_model.startswith(f"result {number}")
    assert runs == [1, 2]


@pytest.mark.req("EN-2")
async def test_identical_call_runs_again(harness):
    runs = []
    model = FixedIdModel(script(probe(1), probe(1), probe(2), Reply("done")), "mine")
    await harness.open(model, [tool(runs)])
    await harness.turn("go")
    assert runs == [1, 1, 2]
    assert last_results(model) == ["result 1", "result 1", "result 2"]
    assert ids_are_unique(harness)


@pytest.mark.parametrize("call_id", ["check-9", "person-1", "task-p", "a\nb", "x" * 10_000, "\u202e"])
async def test_reserved_and_invalid_ids_are_replaced(harness, call_id):
    runs = []
    model = FixedIdModel(script(probe(1), Reply("done")), call_id)
    await harness.open(model, [tool(runs)])
    await harness.turn("go")
    assert (runs, last_results(model)) == ([1], ["result 1"])
    assert [event.call.id.startswith("call_") for event in harness.events_of(ToolCalled)] == [True]
