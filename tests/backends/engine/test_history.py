"""The message history folded from events is always a valid request."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostler.backends.engine import history as history_module
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


def message_event(*parts, message_id="m"):
    return MessageDone(Message(message_id, parts))


def result_event(call_id):
    return ToolFinished(ToolResult(call_id, "ok", f"result {call_id}"))


def test_results_follow_their_calls_in_call_order():
    events = [
        TurnStarted("t", make_prompt("go")),
        message_event(CallPart(call("a")), CallPart(call("b"))),
        result_event("b"),
        result_event("a"),
    ]
    messages = fold_history(events)
    assert [type(s).__name__ for s in messages] == ["UserMessage", "AssistantMessage", "ToolResultsMessage"]
    assert [r.call_id for r in messages[2].results] == ["a", "b"]


def test_call_without_a_result_gets_one():
    messages = fold_history([TurnStarted("t", make_prompt("go")), message_event(CallPart(call("a")))])
    assert messages[-1].results[0].status == "cancelled"


@pytest.mark.req("MD-6")
def test_reply_in_many_pieces_is_joined_once(monkeypatch):
    """A reply may start thousands of calls, so folding a piece must not cost as much as all earlier ones."""
    pieces = [Message(f"m-{index}", (CallPart(call(f"c{index}")),), continues=index > 0) for index in range(300)]
    joined = []
    monkeypatch.setattr(history_module, "join_pieces", lambda parts: joined.append(len(parts)) or join_pieces(parts))
    events = [event for index, piece in enumerate(pieces) for event in (MessageDone(piece), result_event(f"c{index}"))]
    _, reply, results = fold_history([TurnStarted("t", make_prompt("go")), *events])
    assert reply.message.id == "m-0"
    assert [item.id for item in reply.message.calls] == [item.call_id for item in results.results]
    assert joined == [300]


@pytest.mark.invariant("M5")
def test_steering_appears_where_it_was_delivered():
    events = [
        TurnStarted("t", make_prompt("go")),
        message_event(CallPart(call("a"))),
        Steered(make_prompt("left", "p2")),
        result_event("a"),
        Delivered("p2"),
        message_event(TextContent("ok")),
    ]
    messages = fold_history(events)
    assert [type(s).__name__ for s in messages] == [
        "UserMessage",
        "AssistantMessage",
        "ToolResultsMessage",
        "UserMessage",
        "AssistantMessage",
    ]
    assert messages[2].results[0].for_model == "result a"
    assert messages[3].blocks[0].text == "left"


@pytest.mark.req("MD-4")
def test_repaired_call_is_replayed_as_it_ran():
    malformed = ToolCall("a", "read_file", {}, raw='{"path": "a.txt",}')
    ran = ToolCall("a", "read", {"path": "a.txt"}, raw='{"path": "a.txt",}')
    valid = ToolCall("b", "read_file", {"path": "b.txt"}, raw='{"path": "b.txt"}')
    translated = ToolCall("b", "read", {"path": "b.txt"}, raw='{"path": "b.txt"}')
    events = [
        message_event(CallPart(malformed), CallPart(valid)),
        ToolCalled(malformed),
        ToolCalled(ran),
        result_event("a"),
        ToolCalled(translated),
        result_event("b"),
    ]
    reply, _ = fold_history(events)
    assert reply.message.calls == (ran, valid)


def test_manual_command_becomes_a_user_and_an_assistant_message():
    manual_call = ToolCall("h", "bash", {"command": "ls -la"}, "person")
    messages = fold_history([ToolCalled(manual_call), result_event("h")])
    assert messages[0] == UserMessage((TextContent("!ls -la"),))
    assert messages[1].message.text == "$ ls -la\nresult h"


@pytest.mark.req("SE-5")
@pytest.mark.parametrize(
    ("output", "code", "transcript"),
    [("(no output)", 0, "$ true\n[exit 0]\n(no output)"), ("[exit 2]\nno", 2, "$ true\n[exit 2]\nno")],
)
def test_manual_command_is_sent_with_its_exit_code(output, code, transcript):
    result = ToolResult("h", "ok", output, data={"exit_code": code})
    _, reply = fold_history([ToolCalled(ToolCall("h", "bash", {"command": "true"}, "person")), ToolFinished(result)])
    assert reply.message.text == transcript


@pytest.mark.parametrize("answered", [True, False])
def test_manual_command_waits_for_the_models_calls(answered):
    manual_call = ToolCall("h", "bash", {"command": "ls"}, "person")
    events = [
        TurnStarted("t", make_prompt("go")),
        message_event(CallPart(call("a"))),
        ToolCalled(manual_call),
        result_event("h"),
    ]
    messages = fold_history([*events, *([result_event("a")] if answered else [])])
    assert [type(message) for message in messages] == [
        UserMessage,
        AssistantMessage,
        ToolResultsMessage,
        UserMessage,
        AssistantMessage,
    ]
    assert messages[2].results[0].for_model == ("result a" if answered else NOT_RUN)
    assert (messages[3], messages[4].message.text) == (UserMessage((TextContent("!ls"),)), "$ ls\nresult h")
    assert (
        fold_history([*events, result_event("a"), message_event(TextContent("so"))])[2].results[0].for_model
        == "result a"
    )


def test_empty_message_is_not_sent():
    assert [type(s) for s in fold_history([TurnStarted("t", make_prompt("go")), message_event()])] == [UserMessage]


ids = st.sampled_from(["a", "b", "c"])
anything = st.one_of(
    st.builds(lambda text: TurnStarted("t", make_prompt(text)), st.text()),
    st.builds(lambda i: message_event(TextContent("x"), CallPart(call(i))), ids),
    st.builds(lambda i, j: message_event(CallPart(call(i)), CallPart(call(j + "2"))), ids, ids),
    st.builds(result_event, ids),
    st.builds(lambda i: ToolCalled(call(i)), ids),
    st.builds(lambda i: ToolCalled(call(f"hand-{i}", "person")), ids),
    st.builds(lambda i: result_event(f"hand-{i}"), ids),
    st.builds(lambda i: Steered(make_prompt("s", i)), ids),
    st.builds(Delivered, ids),
    st.just(TurnEnded("t", "cancelled")),
)


@given(st.lists(anything))
@pytest.mark.invariant("E6")
def test_any_events_fold_to_a_valid_request(events):
    messages = fold_history(events)
    for index, item in enumerate(messages):
        calls = item.message.calls if isinstance(item, AssistantMessage) else ()
        if calls:
            following = messages[index + 1]
            assert isinstance(following, ToolResultsMessage)
            assert [r.call_id for r in following.results] == [c.id for c in calls]
        if isinstance(item, ToolResultsMessage):
            assert isinstance(messages[index - 1], AssistantMessage)


@pytest.mark.parametrize("name", ["skill", "use_skill", "LoadSkill"])
def test_skill_results_are_never_pruned(name):
    text = "how to do it " * 50
    events = [message_event(CallPart(ToolCall("a", name, {}))), ToolFinished(ToolResult("a", "ok", text)), Pruned(9)]
    assert fold_history(events)[1].results[0].for_model == text
