"""Sixty turns with twenty constraints and three compactions: the next request still contains all constraints."""

import pytest
from engine_harness import Model, Reply

from ostler.core.events import Compacted
from ostler.core.sessions import Compact
from ostler.models.model_types import AssistantMessage, SystemMessage, ToolResultsMessage, UserMessage
from ostler.testing.fake_tool import FakeTool
from ostler.tools.todowrite import TodoWriteTool

CONSTRAINTS = {turn: f"Constraint {turn}: never rename symbol_{turn}." for turn in range(2, 60, 3)}
COMPACT_AFTER = (15, 30, 45)
NOTES = "Objective: port the parser.\nPending risks: the tests of unit {n} were not run.\nNext steps: unit {n}."


def make_reply_function(state):
    def reply(request):
        if request.system.startswith("You shorten the conversation"):
            state["summaries"] += 1
            return Reply(NOTES.format(n=state["turn"]))
        if isinstance(request.history[-1], ToolResultsMessage):
            return Reply(f"Turn {state['turn']} is done.")
        if state["turn"] == 1:
            return Reply("", ("todowrite", {"todos": [{"content": "port all units", "status": "in_progress"}]}))
        return Reply("", ("probe", {"path": f"unit{state['turn']}.py"}))

    return reply


def user_text(request):
    texts = [block.text for message in request.history if isinstance(message, UserMessage) for block in message.blocks]
    return "\n".join(texts)


@pytest.mark.req("EN-9")
async def test_sixty_turns_and_three_compactions_lose_no_constraint(harness):
    state = {"turn": 0, "summaries": 0}
    model = Model(make_reply_function(state), limit=64_000)
    await harness.open(model, [FakeTool("probe"), TodoWriteTool()])
    for turn in range(1, 61):
        state["turn"] = turn
        ended = await harness.turn(CONSTRAINTS.get(turn, f"Continue with unit {turn}."))
        assert ended.reason == "done"
        if turn in COMPACT_AFTER:
            assert await harness.session.apply(Compact())
            assert all(
                item in harness.events_of(Compacted)[-1].summary for n, item in CONSTRAINTS.items() if n <= turn - 5
            )
    state["turn"] = 61
    await harness.turn("What must never be renamed?")
    request = next(r for r in reversed(model.requests) if "What must never be renamed?" in user_text(r))
    assert state["summaries"] == len(harness.events_of(Compacted)) == 3
    assert len(CONSTRAINTS) == 20
    assert [item for item in CONSTRAINTS.values() if item not in user_text(request)] == []
    for expected in (
        "unit30.py",
        "The plan:\n[~] port all units",
        "Objective: port the parser.",
        "Next steps: unit 45.",
    ):
        assert expected in user_text(request)
    assert "Next steps: unit 15." not in user_text(request)
    assert user_text(request).count("Constraint 2:") == 1
    assert len(request.history) < 61 * 2
    kinds = {type(item) for item in request.history}
    assert kinds <= {UserMessage, AssistantMessage, ToolResultsMessage, SystemMessage}
