"""Translates the events of a session's log to the messages of one client."""

from collections.abc import Callable

import msgspec

from ostler.core.errors import Fault
from ostler.core.events import (
    Envelope,
    Event,
    MessageDone,
    MessageSnapshot,
    PartialReply,
    QuestionAnswered,
    QuestionAsked,
    TextDelta,
    ToolFinished,
    TurnEnded,
)
from ostler.core.session_view import Records
from ostler.frontends.server.outbox import TEXT_SIZE, Outbox
from ostler.frontends.server.turn_metadata import turn_metadata
from ostler.wire.client_frames import ApprovalRequest, ApprovalResolved
from ostler.wire.frames_shared import ResumePoint
from ostler.wire.server_frames import AssistantDelta, AssistantDone, ErrorMessage

_INTERNAL = Fault("bug", "internal error of the server; its log has the details")


def hide_internal_error(event: Event) -> Event:
    """Return an event as clients may see it; usually the same object."""
    match event:
        case TurnEnded(fault=Fault(code="bug")):
            return msgspec.structs.replace(event, fault=_INTERNAL)
        case ToolFinished(result) if result.fault and result.fault.code == "bug":
            result = msgspec.structs.replace(result, for_model=_INTERNAL.message, fault=_INTERNAL)
            return msgspec.structs.replace(event, result=result)
        case _:
            return event


class FrameTranslator:
    """Puts the messages for each event into an outbox. It knows how much of an unfinished message was sent."""

    def __init__(
        self, session_id: str, epoch: str, outbox: Outbox, features: frozenset[str], trace: Callable[[str], str]
    ) -> None:
        """`trace` returns the trace id of a turn."""
        self._session_id = session_id
        self._epoch = epoch
        self._outbox = outbox
        self._features = features
        self._trace = trace
        self._sent: dict[str, str] = {}
        self._resumed: tuple[str, int] | None = None

    def resume(self, point: ResumePoint) -> None:
        """Note that the client has the start of an unfinished message."""
        if point.message_id and point.offset > 0:
            self._resumed = (point.message_id, point.offset)

    def put(self, envelope: Envelope, records: Records) -> None:
        """Queue the messages for an event."""
        event = hide_internal_error(envelope.event)
        if event is not envelope.event:
            envelope = msgspec.structs.replace(envelope, event=event)
        if "events" in self._features:
            self._outbox.put_event(envelope)
        else:
            self._put_text(envelope)
        match envelope.event:
            case TurnEnded() as ended:
                self._put_end(ended, envelope, records)
            case QuestionAsked(question) if "approvals" in self._features:
                self._outbox.put(ApprovalRequest(question.id, self._session_id, question=question))
            case QuestionAnswered(question_id, reply) if "approvals" in self._features:
                self._outbox.put(ApprovalResolved(question_id, self._session_id, reply=reply))
            case _:
                pass

    def _put_text(self, envelope: Envelope) -> None:
        match envelope.event:
            case TextDelta(message_id, text):
                sent = self._sent.get(message_id, "")
                self._sent[message_id] = sent + text
                self._put_delta(envelope.seq, message_id, text, len(sent))
            case MessageSnapshot(message_id, text):
                self._put_whole(envelope.seq, message_id, text)
                self._sent[message_id] = text
            case MessageDone(message):
                self._put_whole(envelope.seq, message.id, message.text)
                self._sent.pop(message.id, None)
            case PartialReply(message_id, restarts=True):
                self._sent.setdefault(message_id, "")
            case TurnEnded():
                self._sent.clear()
            case _:
                pass

    def _put_whole(self, seq: int, message_id: str, text: str) -> None:
        """Send what the client does not have of a message: the rest, or all from the first difference on."""
        sent = self._sent.get(message_id, "")
        if not sent and self._resumed and self._resumed[0] == message_id:
            sent = text[: self._resumed[1]]
        self._resumed = None
        start = len(sent) if text.startswith(sent) else _common_length(text, sent)
        if start < len(text) or start < len(sent):
            self._put_delta(seq, message_id, text[start:], start)

    def _put_delta(self, seq: int, message_id: str, text: str, offset: int) -> None:
        for start in range(0, max(len(text), 1), TEXT_SIZE):
            piece = text[start : start + TEXT_SIZE]
            self._outbox.put(AssistantDelta(self._session_id, piece, seq, self._epoch, message_id, offset + start))

    def _put_end(self, ended: TurnEnded, envelope: Envelope, records: Records) -> None:
        trace = self._trace(ended.turn_id)
        metadata = turn_metadata(ended, envelope, records)
        if ended.fault:
            text = str(ended.fault.message)
            self._outbox.put(ErrorMessage(self._session_id, text, "turn_failed", trace_id=trace))
        self._outbox.put(AssistantDone(self._session_id, metadata, envelope.seq, self._epoch, trace))


def _common_length(left: str, right: str) -> int:
    return next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
