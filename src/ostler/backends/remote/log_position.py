"""The position in the server's log, kept in the journal, and what the client takes from the log or a snapshot."""

from collections.abc import Callable

import msgspec

from ostler.core.events import (
    Event,
    MessageDone,
    MessageSnapshot,
    Notice,
    PartialReply,
    RemoteCursor,
    TodosChanged,
    ToolCalled,
    ToolFinished,
    TurnStarted,
    UnknownEvent,
)
from ostler.core.message import CallPart, Message
from ostler.core.prompt import TextContent
from ostler.core.protocols import BackendContext
from ostler.core.session_view import latest_event
from ostler.core.tools import CallOrigin, ToolCall
from ostler.text.sanitise import escape_to_one_line
from ostler.wire.event_codec import EventDecodeError, decode_event
from ostler.wire.frames_shared import ResumePoint, SnapshotMessage
from ostler.wire.remote_events import adopted
from ostler.wire.server_frames import EventMessage, Resync

_SEPARATOR = "/"


class LogPosition:
    """How far the log was read. A record is taken once, also if a crash lost the position after it.

    `is_copied`: this session is a copy of the one that wrote the position, and has no session on the server yet.
    `message` and `turn` are the server's ids of the prompt of the local turn, and of the turn while it runs there.
    """

    def __init__(self, context: BackendContext, local_id: str) -> None:
        self.session_id = self.epoch = ""
        self.message = self.turn = ""
        self.interrupted: TurnStarted | None = None  # the local turn that an earlier process has not ended
        self.seq = 0
        self.is_copied = False
        self._local_id = local_id
        self._context = context
        self._known_messages: set[str] = set()
        self.origin: Callable[[ToolCall], CallOrigin] = lambda call: "model"
        self._load(context)

    def _load(self, context: BackendContext) -> None:
        records = context.records()
        last = max(records.indexes_of(("far_mark",)), default=-1)
        if cursor := self._last_cursor():
            self.session_id, _, self.epoch = cursor.epoch.partition(_SEPARATOR)
            self.seq = cursor.seq
            self.is_copied = cursor.session != self._local_id
        began = max(records.indexes_of(("turn_started",)), default=-1)
        if began > max(records.indexes_of(("turn_ended",)), default=-1) and not self.is_copied:
            started = records[began].event
            self.interrupted = started if isinstance(started, TurnStarted) else None
            if last > began and cursor:
                self.message, self.turn = cursor.message, cursor.turn
        for index in records.indexes_of(("message_done",)):
            if index > last and isinstance(event := records[index].event, MessageDone):
                self._known_messages.add(event.message.id)

    @property
    def resume_point(self) -> ResumePoint:
        return ResumePoint(self.epoch, self.seq)

    def follow(self, message: str, turn: str = "") -> None:
        """Save which message, and which turn of the server, the local turn belongs to."""
        self.message, self.turn = message, turn
        self.save()

    def begin(self, session_id: str, epoch: str, seq: int) -> None:
        """Use another log from now on, or another position in it."""
        self.is_copied = False
        self.session_id, self.epoch, self.seq = session_id, epoch, seq
        self.save()

    def save(self) -> None:
        cursor = RemoteCursor(self._log_name, self.seq, "", self._local_id, self.message, self.turn)
        self._context.emit(cursor)

    def active_seq(self) -> int | None:
        """Return the position in the server's log after the records that are in effect, or None if it is unknown."""
        cursor = self._last_cursor()
        return cursor.seq if cursor and cursor.epoch == self._log_name else None

    def _last_cursor(self) -> RemoteCursor | None:
        cursor = latest_event(self._context.records(), "far_mark")
        return cursor if isinstance(cursor, RemoteCursor) else None

    @property
    def _log_name(self) -> str:
        return f"{self.session_id}{_SEPARATOR}{self.epoch}"

    def take(self, message: EventMessage) -> Event | None:
        """Return the event of a message, or None if it was taken before or belongs to another log.

        Nothing in it can extend what a call may do here: every call is treated as the model's, except checks that this
        machine named (`origin`).
        """
        if message.epoch != self.epoch:
            return None
        try:
            event = decode_event(message.event)
        except EventDecodeError:
            return None
        if event.persisted:
            if message.seq <= self.seq:
                return None
            self.seq = message.seq
        if isinstance(event, UnknownEvent):
            return None
        if isinstance(event, PartialReply) and event.restarts and not (event.text or event.thought):
            return MessageSnapshot(event.message_id)  # the server, which was restarted, requests another reply
        if isinstance(event, MessageDone):
            if event.message.id in self._known_messages:
                return None
            return MessageDone(_as_model_message(event.message))
        return (
            msgspec.structs.replace(event, call=msgspec.structs.replace(event.call, origin=self.origin(event.call)))
            if isinstance(event, ToolCalled)
            else event
        )

    def adopt(self, event: Event, ran_here: Callable[[str], bool]) -> None:
        """Emit an event of the server if the client uses it, and save the position after it."""
        if (own := adopted(event, ran_here)) is None:
            return
        if isinstance(own, ToolFinished) and self._context.records().result(own.result.call_id):
            return
        self._context.emit(own)
        if own.persisted:
            self.save()


def _as_model_message(message: Message) -> Message:
    parts = tuple(
        CallPart(msgspec.structs.replace(part.call, origin="model")) if isinstance(part, CallPart) else part
        for part in message.parts
    )
    return msgspec.structs.replace(message, parts=parts)


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
