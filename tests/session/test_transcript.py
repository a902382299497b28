"""Events as blocks on a screen."""

import pytest

from ostler.session.transcript import CallBlock, TextBlock, ThoughtBlock, Transcript
from ostler.vocabulary.display import Display
from ostler.vocabulary.events import (
    MessageDone,
    MessageSoFar,
    TextDelta,
    ThoughtDelta,
    ToolCalled,
    ToolFinished,
    ToolStarted,
)
from ostler.vocabulary.message import Called, Message, Thought
from ostler.vocabulary.prompt import Text
from ostler.vocabulary.tools import ToolCall, ToolResult

CALL = ToolCall("c", "read", {})


@pytest.mark.req("CL-5")
def test_text_before_calls_is_a_plan_and_the_last_is_the_answer():
    transcript = Transcript()
    plan = transcript.take(MessageDone(Message("m1", (Text("I will look."), Called(CALL)))))
    answer = transcript.take(MessageDone(Message("m2", (Text("Found."),))))
    assert [(block.segment, block.text) for block in (plan, answer)] == [("plan", "I will look."), ("answer", "Found.")]


@pytest.mark.req("CL-5", "MD-6")
def test_what_follows_calls_in_one_reply_is_no_answer_yet():
    transcript = Transcript()
    transcript.take(MessageDone(Message("m1", (Text("I look."), Called(CALL)))))
    rest = transcript.take(MessageDone(Message("m1-1", (Text("And more."),), continues=True)))
    assert rest.segment == "plan"


@pytest.mark.req("CL-6")
def test_an_answer_grows_in_place_and_is_settled_whole():
    transcript = Transcript()
    first = transcript.take(TextDelta("m", "Hel"))
    second = transcript.take(TextDelta("m", "lo"))
    assert first is second
    assert (second.text, second.settled) == ("Hello", False)
    done = transcript.take(MessageDone(Message("m", (Text("Hello!"),))))
    assert done is first
    assert (done.text, done.settled) == ("Hello!", True)
    assert len(transcript.blocks) == 1


def test_thoughts_are_apart():
    transcript = Transcript()
    transcript.take(ThoughtDelta("m", "hm"))
    transcript.take(MessageDone(Message("m", (Thought("hmm"), Text("yes")))))
    assert [(type(b), b.text) for b in transcript.blocks] == [(ThoughtBlock, "hmm"), (TextBlock, "yes")]


def test_a_call_is_one_block_from_its_making_to_its_result():
    transcript = Transcript()
    transcript.take(ToolCalled(CALL))
    assert transcript.take(ToolStarted("c", "read")).status == "running"
    block = transcript.take(ToolFinished(ToolResult("c", "ok", "text", Display("3 lines"))))
    assert isinstance(block, CallBlock)
    assert (block.status, block.settled, block.display.summary) == ("ok", True, "3 lines")
    assert len(transcript.blocks) == 1


@pytest.mark.req("MD-5")
def test_what_an_attempt_that_was_given_up_had_said_does_not_stay():
    transcript = Transcript()
    transcript.take(ThoughtDelta("m", "void"))
    transcript.take(MessageDone(Message("m", (Text("yes"),))))
    assert [(type(b), b.text, b.settled) for b in transcript.blocks] == [
        (ThoughtBlock, "", True),
        (TextBlock, "yes", True),
    ]


@pytest.mark.req("MD-4")
def test_words_that_turn_out_to_be_reasoning_are_shown_as_such():
    transcript = Transcript()
    transcript.take(TextDelta("m", "let me see"))
    transcript.take(MessageDone(Message("m", (Thought("let me see"), Called(ToolCall("c", "read", {}))))))
    assert [(type(b), b.text) for b in transcript.blocks] == [(TextBlock, ""), (ThoughtBlock, "let me see")]


@pytest.mark.req("CL-6")
def test_what_was_said_so_far_replaces_what_was_heard_of_it():
    transcript = Transcript()
    transcript.take(TextDelta("m", "Hel"))
    transcript.take(MessageSoFar("m", "Hello", "hm"))
    transcript.take(TextDelta("m", "!"))
    assert {(type(b), b.text, b.settled) for b in transcript.blocks} == {
        (TextBlock, "Hello!", False),
        (ThoughtBlock, "hm", False),
    }
