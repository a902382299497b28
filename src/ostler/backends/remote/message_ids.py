"""The ids of messages to the server. They name the prompt's record here, so that a resumed session finds its text."""

import os

from ostler.core.session_view import Records
from ostler.wire.frames_shared import SessionSnapshot


def new_message_id(records: Records) -> str:
    """Return an id that no other message has, with the number of the record of the last prompt."""
    last = max(records.indexes_of(("turn_started",)), default=-1)
    return f"{os.urandom(12).hex()}-{records[last].seq if last >= 0 else 0}"


def conversation_texts(snapshot: SessionSnapshot) -> tuple[dict[str, str], dict[int, str]]:
    """Return the texts of messages by id, and those of prompts by the record in their id."""
    by_id = {message.id: message.content for message in snapshot.messages if message.id}
    prompts = (message for message in snapshot.messages if message.role == "user")
    return by_id, {seq: message.content for message in prompts if (seq := _record_number(message.id))}


def _record_number(message_id: str) -> int:
    number = message_id.partition("-")[2]
    return int(number) if number.isascii() and number.isdigit() and len(number) < 16 else 0
