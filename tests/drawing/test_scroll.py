"""A session as lines, each printed once, also for whoever missed a part of it."""

import pytest

from ostler.drawing.paint import Paint
from ostler.drawing.scroll import Scroll
from ostler.vocabulary.events import MessageDone, MessageSoFar, TextDelta
from ostler.vocabulary.message import Message
from ostler.vocabulary.prompt import Text

DONE = MessageDone(Message("m", (Text("one\ntwo\nthree"),)))


def lines(*events):
    scroll = Scroll(Paint(on=False))
    return [line for event in events for line in scroll.take(event)]


@pytest.mark.req("CL-6")
@pytest.mark.parametrize("heard", [(), (TextDelta("m", "one\nt"),), (MessageSoFar("m", "one\n"),)])
def test_what_was_missed_of_a_message_is_printed_once(heard):
    whole = lines(TextDelta("m", "one\ntwo\nth"), DONE)
    assert lines(*heard, MessageSoFar("m", "one\ntwo\nth"), DONE) == whole
