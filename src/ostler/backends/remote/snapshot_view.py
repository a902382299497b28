"""Shows the messages of a snapshot that the journal does not have."""

from ostler.core.events import MessageDone, Notice, TodosChanged
from ostler.core.message import Message
from ostler.core.prompt import TextContent
from ostler.core.protocols import BackendContext
from ostler.text.sanitise import escape_to_one_line
from ostler.wire.frames_shared import SnapshotMessage
from ostler.wire.server_frames import Resync


def show_missing(resync: Resync, context: BackendContext, own_message_id: str, *, is_continued: bool) -> None:
    """Emit the messages that are not in the journal. `is_continued`: the journal has a part of the conversation."""
    records, snapshot = context.records(), resync.snapshot
    events = (records[index].event for index in records.indexes_of(("message_done",)))
    known = {event.message.id for event in events if isinstance(event, MessageDone)}
    if is_continued:
        text = f"the server's log cannot be continued ({resync.reason}); the messages above may be incomplete"
        context.emit(Notice("warning", text))
    if snapshot.truncated:
        context.emit(Notice("info", "the server left out the oldest messages"))
    for message in snapshot.messages:
        if message.id not in known and message.id != own_message_id:
            _show(message, context, shows_prompts=not is_continued)
    if snapshot.todos:
        context.emit(TodosChanged(snapshot.todos))


def _show(message: SnapshotMessage, context: BackendContext, *, shows_prompts: bool) -> None:
    if message.role == "user" and shows_prompts:
        who = escape_to_one_line(message.who[:100]) or "earlier prompt"
        context.emit(Notice("info", f"{who}: {message.content}", quotes=True))
    elif message.role == "assistant" and message.content:
        context.emit(MessageDone(Message(message.id, (TextContent(message.content),))))
