"""Events as updates, also where a part of them was missed."""

import pytest

from ostler.core.events import MessageDone, MessageSnapshot, TextDelta
from ostler.core.message import Message
from ostler.core.prompt import TextContent
from ostler.frontends.acp_agent.session_updates import SessionUpdateBuilder
from ostler.wire.acp_updates import AgentMessageChunk, AgentThoughtChunk


@pytest.mark.req("AC-6")
@pytest.mark.parametrize("heard", [(), (TextDelta("m", "Hel"),), (MessageSnapshot("m", "Hello"),)])
def test_what_was_missed_of_a_message_is_told_once_and_in_it(heard):
    teller = SessionUpdateBuilder("/w")
    done = MessageDone(Message("m", (TextContent("Hello!"),)))
    updates = [u for event in (*heard, MessageSnapshot("m", "Hello", "hm"), done) for u in teller.updates_for(event)]
    words = [update for update in updates if isinstance(update, AgentMessageChunk)]
    assert "".join(update.content.text for update in words) == "Hello!"
    assert {update.message_id for update in words} == {"m"}
    assert any(isinstance(update, AgentThoughtChunk) and update.content.text == "hm" for update in updates)
