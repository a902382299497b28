"""A rendered session: each line is printed once, also after missed events."""

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
    renderer = TranscriptRenderer(Styler(enabled=False))
    return [line for event in events for line in renderer.render(event)]


@pytest.mark.req("CL-6")
@pytest.mark.parametrize("received", [(), (TextDelta("m", "one\nt"),), (MessageSnapshot("m", "one\n"),)])
def test_missed_text_of_a_message_is_printed_once(received):
    expected = lines(TextDelta("m", "one\ntwo\nth"), DONE)
    assert lines(*received, MessageSnapshot("m", "one\ntwo\nth"), DONE) == expected


@pytest.mark.req("CL-5", "MD-6")
@pytest.mark.parametrize("with_text", [True, False])
def test_result_is_below_its_call_also_after_text(with_text):
    started = (ToolCalled(ToolCall("c", "read", {})), ToolStarted("c", "read", False))
    text = (TextDelta("m", "one\ntwo\nthree"), DONE) if with_text else ()
    *_, call, result = lines(*started, *text, ToolFinished(ToolResult("c", "ok", "x", Display("1 line"))))
    assert (call, result) == ("⏺ read {}", "  ⎿ 1 line")
    assert len(lines(*started)) == 1
