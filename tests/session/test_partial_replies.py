"""Replies are saved while they grow, at limited cost, and repaired after a crash."""

import asyncio

import pytest

from ostler.backends.engine.history import fold_history
from ostler.backends.scripted import ScriptedBackend
from ostler.core.events import (
    Envelope,
    MessageDone,
    MessageSnapshot,
    PartialReply,
    TextDelta,
    ThoughtDelta,
    ToolCalled,
    ToolFinished,
    TurnEnded,
    TurnStarted,
)
from ostler.core.message import CallPart, Message, ThoughtPart
from ostler.core.prompt import Prompt, TextContent
from ostler.core.tools import ToolCall
from ostler.journal.conversation import read_conversation
from ostler.models.model_types import AssistantMessage, ToolResultsMessage, UserMessage
from ostler.session.partial_reply_saver import MAX_UNSAVED, PartialReplySaver
from ostler.session.repair import close_unfinished
from ostler.session.state import SessionState
from ostler.testing.session_fixture import open_test_session
from ostler.workspace.local_workspace import LocalWorkspace

pytestmark = pytest.mark.req("SE-1", "CL-6")
PROMPT = Prompt("p", (TextContent("go"),))
TRUNCATED = Message("m", (TextContent("one two"),), truncated=True)


def repaired(*events):
    """Return the events that repair a journal with these events."""
    added = []
    close_unfinished(SessionState(events), added.append)
    return added


@pytest.mark.invariant("J6")
def test_interrupted_reply_is_repaired_as_a_truncated_message():
    events = [TurnStarted("t", PROMPT), PartialReply("m", "one "), PartialReply("m", "two")]
    added = repaired(*events)
    assert added == [MessageDone(TRUNCATED), TurnEnded("t", "cancelled")]
    assert fold_history([*events, *added]) == (UserMessage(PROMPT.blocks), AssistantMessage(TRUNCATED))
    assert repaired(*events, *added) == []


@pytest.mark.parametrize(
    "end", [MessageDone(Message("m", (TextContent("one two three"),))), TurnEnded("t", "cancelled")]
)
def test_complete_message_replaces_the_partial_reply(end):
    added = repaired(TurnStarted("t", PROMPT), PartialReply("m", "one "), end)
    assert [event for event in added if isinstance(event, MessageDone)] == []


def test_restarted_reply_forgets_the_earlier_text():
    events = [
        PartialReply("m", "void", "void"),
        PartialReply("m", "one ", "hm", restarts=True),
        PartialReply("m", "two"),
    ]
    (done,) = repaired(*events)
    assert done.message.parts == (ThoughtPart("hm"), TextContent("one two"))


def test_text_behind_a_running_call_is_a_valid_request():
    call = ToolCall("c", "probe", {})
    events = [
        TurnStarted("t", PROMPT),
        MessageDone(Message("m", (CallPart(call),))),
        ToolCalled(call),
        PartialReply("m-1", "meanwhile"),
    ]
    added = repaired(*events)
    assert [type(event) for event in added] == [ToolFinished, MessageDone, TurnEnded]
    messages = fold_history([*events, *added])
    assert [type(message) for message in messages] == [
        UserMessage,
        AssistantMessage,
        ToolResultsMessage,
        AssistantMessage,
    ]


def test_conversation_of_an_unrepaired_journal_has_the_partial_reply():
    events = [TurnStarted("t", PROMPT), PartialReply("m", "one "), PartialReply("m", "two")]
    *_, last = read_conversation(Envelope(number, 0.0, event) for number, event in enumerate(events, 1))
    assert (last.text, last.cut) == ("one two", True)


@pytest.mark.invariant("J6")
async def test_saves_are_bounded_by_size_and_linear():
    saved = []
    saver = PartialReplySaver(saved.append)
    for _ in range(100_000):
        saver.on_event(TextDelta("m", "word "))
    saver.stop()
    assert len(saved) == 500_000 // MAX_UNSAVED
    assert sum(len(event.text) for event in saved) <= 500_000


async def test_text_is_saved_after_a_moment_without_more_text():
    saved = asyncio.Queue()
    saver = PartialReplySaver(saved.put_nowait)
    for event in (ThoughtDelta("m", "hm"), TextDelta("m", "one "), TextDelta("m", "two")):
        saver.on_event(event)
    assert await asyncio.wait_for(saved.get(), 10) == PartialReply("m", "one two", "hm")
    saver.on_event(MessageSnapshot("m", "1"))
    assert await asyncio.wait_for(saved.get(), 10) == PartialReply("m", "1", "", restarts=True)


@pytest.mark.invariant("J6")
async def test_session_saves_the_deltas_of_any_backend(tmp_path):
    async def act(context, prompt):
        context.emit(TextDelta("m", "x" * MAX_UNSAVED))
        context.emit(TextDelta("m", "y"))
        context.emit(MessageDone(Message("m", (TextContent("done"),))))

    session = await open_test_session(ScriptedBackend([act]), [], LocalWorkspace(str(tmp_path)))
    await session.start(PROMPT).wait()
    saved = [event for event in session.events() if isinstance(event, PartialReply)]
    await session.aclose()
    assert saved == [PartialReply("m", "x" * MAX_UNSAVED)]
