"""Events as updates, also where a part of them was missed."""

import pytest

from ostler.faces.editor.telling import Teller
from ostler.vocabulary.events import MessageDone, MessageSoFar, TextDelta
from ostler.vocabulary.message import Message
from ostler.vocabulary.prompt import Text
from ostler.wire.acp_updates import AgentMessageChunk, AgentThoughtChunk


@pytest.mark.req("AC-6")
@pytest.mark.parametrize("heard", [(), (TextDelta("m", "Hel"),), (MessageSoFar("m", "Hello"),)])
def test_what_was_missed_of_a_message_is_told_once_and_in_it(heard):
    teller = Teller("/w")
    done = MessageDone(Message("m", (Text("Hello!"),)))
    updates = [u for event in (*heard, MessageSoFar("m", "Hello", "hm"), done) for u in teller.take(event)]
    words = [update for update in updates if isinstance(update, AgentMessageChunk)]
    assert "".join(update.content.text for update in words) == "Hello!"
    assert {update.message_id for update in words} == {"m"}
    assert any(isinstance(update, AgentThoughtChunk) and update.content.text == "hm" for update in updates)
