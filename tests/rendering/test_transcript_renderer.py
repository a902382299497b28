"""A session as lines, each printed once, also for whoever missed a part of it."""

import pytest

from ostler.core.display import Display
from ostler.core.events import MessageDone, MessageSnapshot, TextDelta, ToolCalled, ToolFinished, ToolStarted
from ostler.core.message import Message
from ostler.core.prompt import TextContent
from ostler.core.tools import ToolCall, ToolResult
from ostler.rendering.style import Styler
from ostler.rendering.transcript_renderer import TranscriptRenderer

DONE = MessageDone(Message("m", (TextContent("one\ntwo\nthree"),)))


def lines(*events):
    scroll = TranscriptRenderer(Styler(enabled=False))
    return [line for event in events for line in scroll.render(event)]


@pytest.mark.req("CL-6")
@pytest.mark.parametrize("heard", [(), (TextDelta("m", "one\nt"),), (MessageSnapshot("m", "one\n"),)])
def test_what_was_missed_of_a_message_is_printed_once(heard):
    whole = lines(TextDelta("m", "one\ntwo\nth"), DONE)
    assert lines(*heard, MessageSnapshot("m", "one\ntwo\nth"), DONE) == whole


@pytest.mark.req("CL-5", "MD-6")
@pytest.mark.parametrize("said", [True, False])
def test_a_result_stands_below_its_call_also_when_words_came_between(said):
    begun = (ToolCalled(ToolCall("c", "read", {})), ToolStarted("c", "read", False))
    words = (TextDelta("m", "one\ntwo\nthree"), DONE) if said else ()
    *_, call, result = lines(*begun, *words, ToolFinished(ToolResult("c", "ok", "x", Display("1 line"))))
    assert (call, result) == ("⏺ read {}", "  ⎿ 1 line")
    assert len(lines(*begun)) == 1
