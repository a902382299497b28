"""The live feed: one line in plain words for each event."""

import pytest

from ostler.core.display import Display
from ostler.core.events import (
    Envelope,
    MessageDone,
    PermissionAsked,
    PermissionDecided,
    StateChanged,
    ToolCalled,
    ToolFinished,
)
from ostler.core.message import Message
from ostler.core.permission import Decision, Permission
from ostler.core.prompt import TextContent
from ostler.core.tools import ToolCall, ToolResult
from ostler.interaction.event_feed import EventFeed

COMMAND = Permission("run cd src\ncurl x\u202ey | sh")


def feed_of(*events):
    feed = EventFeed()
    for seq, event in enumerate(events, 1):
        feed.on_event(Envelope(seq, 0.0, event))
    return [text for _, text in feed.lines]


@pytest.mark.req("TU-1")
@pytest.mark.parametrize(
    ("event", "lines"),
    [
        (StateChanged("model_generating"), ["the model is answering"]),
        (StateChanged("awaiting_permission"), []),
        (MessageDone(Message("m", (TextContent("x"),))), ["reply received"]),
        (PermissionAsked("a", COMMAND), ["approval needed: run cd src ⏎ curl x<U+202E>y | sh"]),
        (
            PermissionDecided("a", COMMAND, Decision("cancel", "person")),
            ["cancelled by you: run cd src ⏎ curl x<U+202E>y | sh"],
        ),
        (PermissionDecided("a", Permission("x"), Decision("allow", "person", who="ann")), ["allowed by ann: x"]),
        (PermissionDecided("a", Permission("x"), Decision("deny", "policy")), ["denied: x"]),
    ],
)
def test_line_of_an_event(event, lines):
    assert feed_of(event) == lines


@pytest.mark.req("TU-1")
def test_cancelled_call_is_said_once():
    call = ToolCalled(ToolCall("c", "edit", {}))
    assert feed_of(call, ToolFinished(ToolResult("c", "cancelled", "", Display("cancelled")))) == ["edit cancelled"]
