"""What the model is sent, folded from events: always a valid request."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostler.backends.engine import history as folding
from ostler.backends.engine.history import NOT_RUN, fold_history, join_pieces
from ostler.core.events import (
    Delivered,
    MessageDone,
    Pruned,
    Steered,
    ToolCalled,
    ToolFinished,
    TurnEnded,
    TurnStarted,
)
from ostler.core.message import CallPart, Message
from ostler.core.prompt import TextContent
from ostler.core.tools import ToolCall, ToolResult
from ostler.models.model_types import AssistantMessage, ToolResultsMessage, UserMessage
from ostler.testing.session_fixture import make_prompt


def call(call_id, origin="model"):
    return ToolCall(call_id, "bash", {"command": f"run {call_id}"}, origin)


def says(*parts, message_id="m"):
    return MessageDone(Message(message_id, parts))


def done(call_id):
    return ToolFinished(ToolResult(call_id, "ok", f"result {call_id}"))


def test_results_stand_right_after_their_calls_in_the_order_of_the_calls():
    events = [TurnStarted("t", make_prompt("go")), says(CallPart(call("a")), CallPart(call("b"))), done("b"), done("a")]
    said = fold_history(events)
    assert [type(s).__name__ for s in said] == ["UserMessage", "AssistantMessage", "ToolResultsMessage"]
    assert [r.call_id for r in said[2].results] == ["a", "b"]


def test_a_call_without_a_result_gets_one():
    said = fold_history([TurnStarted("t", make_prompt("go")), says(CallPart(call("a")))])
    assert said[-1].results[0].status == "cancelled"


@pytest.mark.req("MD-6")
def test_a_reply_in_many_pieces_is_put_together_once(monkeypatch):
    """A model may begin thousands of calls in one reply: each piece must cost what it holds, not all before it."""
    pieces = [Message(f"m-{at}", (CallPart(call(f"c{at}")),), continues=at > 0) for at in range(300)]
    put_together = []
    monkeypatch.setattr(folding, "join_pieces", lambda parts: put_together.append(len(parts)) or join_pieces(parts))
    events = [event for at, piece in enumerate(pieces) for event in (MessageDone(piece), done(f"c{at}"))]
    _, reply, results = fold_history([TurnStarted("t", make_prompt("go")), *events])
    assert reply.message.id == "m-0"
    assert [one.id for one in reply.message.calls] == [one.call_id for one in results.results]
    assert put_together == [300]


def test_steering_is_said_where_it_was_delivered():
    events = [
        TurnStarted("t", make_prompt("go")),
        says(CallPart(call("a"))),
        Steered(make_prompt("left", "p2")),
        done("a"),
        Delivered("p2"),
        says(TextContent("ok")),
    ]
    said = fold_history(events)
    assert [type(s).__name__ for s in said] == [
        "UserMessage",
        "AssistantMessage",
        "ToolResultsMessage",
        "UserMessage",
        "AssistantMessage",
    ]
    assert said[2].results[0].for_model == "result a"
    assert said[3].blocks[0].text == "left"


def test_a_persons_own_command_is_one_user_and_one_assistant_message():
    by_hand = ToolCall("h", "bash", {"command": "ls -la"}, "person")
    said = fold_history([ToolCalled(by_hand), done("h")])
    assert said[0] == UserMessage((TextContent("!ls -la"),))
    assert said[1].message.text == "result h"


@pytest.mark.parametrize("answered", [True, False])
def test_a_persons_own_command_waits_for_the_models_calls(answered):
    by_hand = ToolCall("h", "bash", {"command": "ls"}, "person")
    events = [TurnStarted("t", make_prompt("go")), says(CallPart(call("a"))), ToolCalled(by_hand), done("h")]
    said = fold_history([*events, *([done("a")] if answered else [])])
    assert [type(one) for one in said] == [
        UserMessage,
        AssistantMessage,
        ToolResultsMessage,
        UserMessage,
        AssistantMessage,
    ]
    assert said[2].results[0].for_model == ("result a" if answered else NOT_RUN)
    assert (said[3], said[4].message.text) == (UserMessage((TextContent("!ls"),)), "result h")
    assert fold_history([*events, done("a"), says(TextContent("so"))])[2].results[0].for_model == "result a"


def test_an_empty_message_is_not_sent():
    assert [type(s) for s in fold_history([TurnStarted("t", make_prompt("go")), says()])] == [UserMessage]


ids = st.sampled_from(["a", "b", "c"])
anything = st.one_of(
    st.builds(lambda text: TurnStarted("t", make_prompt(text)), st.text()),
    st.builds(lambda i: says(TextContent("x"), CallPart(call(i))), ids),
    st.builds(lambda i, j: says(CallPart(call(i)), CallPart(call(j + "2"))), ids, ids),
    st.builds(done, ids),
    st.builds(lambda i: ToolCalled(call(i)), ids),
    st.builds(lambda i: ToolCalled(call(f"hand-{i}", "person")), ids),
    st.builds(lambda i: done(f"hand-{i}"), ids),
    st.builds(lambda i: Steered(make_prompt("s", i)), ids),
    st.builds(Delivered, ids),
    st.just(TurnEnded("t", "cancelled")),
)


@given(st.lists(anything))
def test_any_log_cut_anywhere_folds_to_a_valid_request(events):
    said = fold_history(events)
    for index, item in enumerate(said):
        calls = item.message.calls if isinstance(item, AssistantMessage) else ()
        if calls:
            following = said[index + 1]
            assert isinstance(following, ToolResultsMessage)
            assert [r.call_id for r in following.results] == [c.id for c in calls]
        if isinstance(item, ToolResultsMessage):
            assert isinstance(said[index - 1], AssistantMessage)


@pytest.mark.parametrize("name", ["skill", "use_skill", "LoadSkill"])
def test_a_skill_by_any_name_is_never_left_out(name):
    text = "how to do it " * 50
    events = [says(CallPart(ToolCall("a", name, {}))), ToolFinished(ToolResult("a", "ok", text)), Pruned(9)]
    assert fold_history(events)[1].results[0].for_model == text
