"""Conversion of events to updates, also after missed events."""

import pytest

from ostler.core.events import MessageDone, MessageSnapshot, TextDelta
from ostler.core.message import Message
from ostler.core.prompt import TextContent
from ostler.frontends.acp_agent.session_updates import SessionUpdateBuilder
from ostler.wire.acp_updates import AgentMessageChunk, AgentThoughtChunk


@pytest.mark.req("AC-6")
@pytest.mark.parametrize("received", [(), (TextDelta("m", "Hel"),), (MessageSnapshot("m", "Hello"),)])
def test_missed_text_of_a_message_is_sent_once(received):
    builder = SessionUpdateBuilder("/w")
    done = MessageDone(Message("m", (TextContent("Hello!"),)))
    updates = [
        u for event in (*received, MessageSnapshot("m", "Hello", "hm"), done) for u in builder.updates_for(event)
    ]
    chunks = [update for update in updates if isinstance(update, AgentMessageChunk)]
    assert "".join(update.content.text for update in chunks) == "Hello!"
    assert {update.message_id for update in chunks} == {"m"}
    assert any(isinstance(update, AgentThoughtChunk) and update.content.text == "hm" for update in updates)
