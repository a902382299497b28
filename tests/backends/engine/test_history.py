"""What the model is sent, folded from events: always a valid request."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostler.backends.engine import history as folding
from ostler.backends.engine.history import NOT_RUN, history, joined
from ostler.models.words import ModelSaid, ToolsSaid, UserSaid
from ostler.testing.stagehand import prompt
from ostler.vocabulary.events import (
    Delivered,
    MessageDone,
    Pruned,
    Steered,
    ToolCalled,
    ToolFinished,
    TurnEnded,
    TurnStarted,
)
from ostler.vocabulary.message import Called, Message
from ostler.vocabulary.prompt import Text
from ostler.vocabulary.tools import ToolCall, ToolResult


def call(call_id, origin="model"):
    return ToolCall(call_id, "bash", {"command": f"run {call_id}"}, origin)


def says(*parts, message_id="m"):
    return MessageDone(Message(message_id, parts))


def done(call_id):
    return ToolFinished(ToolResult(call_id, "ok", f"result {call_id}"))


def test_results_stand_right_after_their_calls_in_the_order_of_the_calls():
    events = [TurnStarted("t", prompt("go")), says(Called(call("a")), Called(call("b"))), done("b"), done("a")]
    said = history(events)
    assert [type(s).__name__ for s in said] == ["UserSaid", "ModelSaid", "ToolsSaid"]
    assert [r.call_id for r in said[2].results] == ["a", "b"]


def test_a_call_without_a_result_gets_one():
    said = history([TurnStarted("t", prompt("go")), says(Called(call("a")))])
    assert said[-1].results[0].status == "cancelled"


@pytest.mark.req("MD-6")
def test_a_reply_in_many_pieces_is_put_together_once(monkeypatch):
    """A model may begin thousands of calls in one reply: each piece must cost what it holds, not all before it."""
    pieces = [Message(f"m-{at}", (Called(call(f"c{at}")),), continues=at > 0) for at in range(300)]
    put_together = []
    monkeypatch.setattr(folding, "joined", lambda parts: put_together.append(len(parts)) or joined(parts))
    events = [event for at, piece in enumerate(pieces) for event in (MessageDone(piece), done(f"c{at}"))]
    _, reply, results = history([TurnStarted("t", prompt("go")), *events])
    assert reply.message.id == "m-0"
    assert [one.id for one in reply.message.calls] == [one.call_id for one in results.results]
    assert put_together == [300]


def test_steering_is_said_where_it_was_delivered():
    events = [
        TurnStarted("t", prompt("go")),
        says(Called(call("a"))),
        Steered(prompt("left", "p2")),
        done("a"),
        Delivered("p2"),
        says(Text("ok")),
    ]
    said = history(events)
    assert [type(s).__name__ for s in said] == ["UserSaid", "ModelSaid", "ToolsSaid", "UserSaid", "ModelSaid"]
    assert said[2].results[0].for_model == "result a"
    assert said[3].blocks[0].text == "left"


def test_a_persons_own_command_is_one_user_and_one_assistant_message():
    by_hand = ToolCall("h", "bash", {"command": "ls -la"}, "person")
    said = history([ToolCalled(by_hand), done("h")])
    assert said[0] == UserSaid((Text("!ls -la"),))
    assert said[1].message.text == "result h"


@pytest.mark.parametrize("answered", [True, False])
def test_a_persons_own_command_waits_for_the_models_calls(answered):
    by_hand = ToolCall("h", "bash", {"command": "ls"}, "person")
    events = [TurnStarted("t", prompt("go")), says(Called(call("a"))), ToolCalled(by_hand), done("h")]
    said = history([*events, *([done("a")] if answered else [])])
    assert [type(one) for one in said] == [UserSaid, ModelSaid, ToolsSaid, UserSaid, ModelSaid]
    assert said[2].results[0].for_model == ("result a" if answered else NOT_RUN)
    assert (said[3], said[4].message.text) == (UserSaid((Text("!ls"),)), "result h")
    assert history([*events, done("a"), says(Text("so"))])[2].results[0].for_model == "result a"


def test_an_empty_message_is_not_sent():
    assert [type(s) for s in history([TurnStarted("t", prompt("go")), says()])] == [UserSaid]


ids = st.sampled_from(["a", "b", "c"])
anything = st.one_of(
    st.builds(lambda text: TurnStarted("t", prompt(text)), st.text()),
    st.builds(lambda i: says(Text("x"), Called(call(i))), ids),
    st.builds(lambda i, j: says(Called(call(i)), Called(call(j + "2"))), ids, ids),
    st.builds(done, ids),
    st.builds(lambda i: ToolCalled(call(i)), ids),
    st.builds(lambda i: ToolCalled(call(f"hand-{i}", "person")), ids),
    st.builds(lambda i: done(f"hand-{i}"), ids),
    st.builds(lambda i: Steered(prompt("s", i)), ids),
    st.builds(Delivered, ids),
    st.just(TurnEnded("t", "cancelled")),
)


@given(st.lists(anything))
def test_any_log_cut_anywhere_folds_to_a_valid_request(events):
    said = history(events)
    for index, item in enumerate(said):
        calls = item.message.calls if isinstance(item, ModelSaid) else ()
        if calls:
            following = said[index + 1]
            assert isinstance(following, ToolsSaid)
            assert [r.call_id for r in following.results] == [c.id for c in calls]
        if isinstance(item, ToolsSaid):
            assert isinstance(said[index - 1], ModelSaid)


@pytest.mark.parametrize("name", ["skill", "use_skill", "LoadSkill"])
def test_a_skill_by_any_name_is_never_left_out(name):
    text = "how to do it " * 50
    events = [says(Called(ToolCall("a", name, {}))), ToolFinished(ToolResult("a", "ok", text)), Pruned(9)]
    assert history(events)[1].results[0].for_model == text
