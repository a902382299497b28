"""Events as transcript blocks."""

import pytest

from ostler.core.display import Display
from ostler.core.events import (
    MessageDone,
    MessageSnapshot,
    TextDelta,
    ThoughtDelta,
    ToolCalled,
    ToolFinished,
    ToolStarted,
)
from ostler.core.message import CallPart, Message, ThoughtPart
from ostler.core.prompt import TextContent
from ostler.core.tools import ToolCall, ToolResult
from ostler.session.transcript import CallBlock, TextBlock, ThoughtBlock, Transcript

CALL = ToolCall("c", "read", {})


@pytest.mark.req("CL-5")
def test_text_before_calls_is_plan_and_last_text_is_answer():
    transcript = Transcript()
    plan = transcript.apply(MessageDone(Message("m1", (TextContent("I will look."), CallPart(CALL)))))
    answer = transcript.apply(MessageDone(Message("m2", (TextContent("Found."),))))
    assert [(block.segment, block.text) for block in (plan, answer)] == [("plan", "I will look."), ("answer", "Found.")]


@pytest.mark.req("CL-5", "MD-6")
def test_text_after_calls_in_same_reply_is_plan():
    transcript = Transcript()
    transcript.apply(MessageDone(Message("m1", (TextContent("I look."), CallPart(CALL)))))
    rest = transcript.apply(MessageDone(Message("m1-1", (TextContent("And more."),), continues=True)))
    assert rest.segment == "plan"


@pytest.mark.req("CL-6")
@pytest.mark.invariant("E4")
def test_answer_grows_in_one_block_until_final():
    transcript = Transcript()
    first = transcript.apply(TextDelta("m", "Hel"))
    second = transcript.apply(TextDelta("m", "lo"))
    assert first is second
    assert (second.text, second.final) == ("Hello", False)
    done = transcript.apply(MessageDone(Message("m", (TextContent("Hello!"),))))
    assert done is first
    assert (done.text, done.final) == ("Hello!", True)
    assert len(transcript.blocks) == 1


def test_thoughts_have_their_own_block():
    transcript = Transcript()
    transcript.apply(ThoughtDelta("m", "hm"))
    transcript.apply(MessageDone(Message("m", (ThoughtPart("hmm"), TextContent("yes")))))
    assert [(type(b), b.text) for b in transcript.blocks] == [(ThoughtBlock, "hmm"), (TextBlock, "yes")]


def test_call_has_one_block_from_request_to_result():
    transcript = Transcript()
    transcript.apply(ToolCalled(CALL))
    assert transcript.apply(ToolStarted("c", "read")).status == "running"
    block = transcript.apply(ToolFinished(ToolResult("c", "ok", "text", Display("3 lines"))))
    assert isinstance(block, CallBlock)
    assert (block.status, block.final, block.display.summary) == ("ok", True, "3 lines")
    assert len(transcript.blocks) == 1


@pytest.mark.req("MD-5")
def test_text_of_abandoned_attempt_is_removed():
    transcript = Transcript()
    transcript.apply(ThoughtDelta("m", "void"))
    transcript.apply(MessageDone(Message("m", (TextContent("yes"),))))
    assert [(type(b), b.text, b.final) for b in transcript.blocks] == [
        (ThoughtBlock, "", True),
        (TextBlock, "yes", True),
    ]


@pytest.mark.req("MD-4")
def test_text_that_becomes_reasoning_moves_to_thought_block():
    transcript = Transcript()
    transcript.apply(TextDelta("m", "let me see"))
    transcript.apply(MessageDone(Message("m", (ThoughtPart("let me see"), CallPart(ToolCall("c", "read", {}))))))
    assert [(type(b), b.text) for b in transcript.blocks] == [(TextBlock, ""), (ThoughtBlock, "let me see")]


@pytest.mark.req("CL-6")
def test_snapshot_replaces_received_deltas():
    transcript = Transcript()
    transcript.apply(TextDelta("m", "Hel"))
    transcript.apply(MessageSnapshot("m", "Hello", "hm"))
    transcript.apply(TextDelta("m", "!"))
    assert {(type(b), b.text, b.final) for b in transcript.blocks} == {
        (TextBlock, "Hello!", False),
        (ThoughtBlock, "hm", False),
    }
