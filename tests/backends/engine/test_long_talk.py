"""Sixty turns, twenty constraints planted on the way, three summaries forced: what the next request still holds."""

import pytest
from engine_play import Model, Said

from ostler.core.events import Compacted
from ostler.core.sessions import Compact
from ostler.models.model_types import AssistantMessage, SystemMessage, ToolResultsMessage, UserMessage
from ostler.testing.fake_tool import FakeTool
from ostler.tools.todowrite import TodoWriteTool

CONSTRAINTS = {turn: f"Constraint {turn}: never rename symbol_{turn}." for turn in range(2, 60, 3)}
COMPACT_AFTER = (15, 30, 45)
NOTES = "Objective: port the parser.\nPending risks: the tests of unit {n} were not run.\nNext steps: unit {n}."


def reply_of(state):
    def reply(request):
        if request.system.startswith("You shorten the record"):
            state["summaries"] += 1
            return Said(NOTES.format(n=state["turn"]))
        if isinstance(request.history[-1], ToolResultsMessage):
            return Said(f"Turn {state['turn']} is done.")
        if state["turn"] == 1:
            return Said("", ("todowrite", {"todos": [{"content": "port all units", "status": "in_progress"}]}))
        return Said("", ("probe", {"path": f"unit{state['turn']}.py"}))

    return reply


def words(request):
    texts = [block.text for said in request.history if isinstance(said, UserMessage) for block in said.blocks]
    return "\n".join(texts)


@pytest.mark.req("EN-9")
async def test_sixty_turns_and_three_summaries_lose_no_constraint(harness):
    state = {"turn": 0, "summaries": 0}
    model = Model(reply_of(state), limit=64_000)
    await harness.open(model, [FakeTool("probe"), TodoWriteTool()])
    for turn in range(1, 61):
        state["turn"] = turn
        ended = await harness.turn(CONSTRAINTS.get(turn, f"Go on with unit {turn}."))
        assert ended.reason == "done"
        if turn in COMPACT_AFTER:
            assert await harness.session.apply(Compact())
            assert all(said in harness.past(Compacted)[-1].summary for n, said in CONSTRAINTS.items() if n <= turn - 5)
    state["turn"] = 61
    await harness.turn("What must never be renamed?")
    asked = next(r for r in reversed(model.requests) if "What must never be renamed?" in words(r))
    assert state["summaries"] == len(harness.past(Compacted)) == 3
    assert len(CONSTRAINTS) == 20
    assert [said for said in CONSTRAINTS.values() if said not in words(asked)] == []
    for kept in ("unit30.py", "The plan:\n[~] port all units", "Objective: port the parser.", "Next steps: unit 45."):
        assert kept in words(asked)
    assert "Next steps: unit 15." not in words(asked)
    assert words(asked).count("Constraint 2:") == 1
    assert len(asked.history) < 61 * 2
    kinds = {type(said) for said in asked.history}
    assert kinds <= {UserMessage, AssistantMessage, ToolResultsMessage, SystemMessage}
