"""One model call: streams the reply as events and collects it into a message."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import msgspec

from ostler.backends.engine.history import join_pieces
from ostler.backends.engine.internal_agents import usage_event
from ostler.core.errors import BackendError
from ostler.core.events import (
    MessageDone,
    MessageSnapshot,
    Notice,
    Retrying,
    TextDelta,
    ThoughtDelta,
    ToolCalled,
    Waiting,
)
from ostler.core.message import CallPart, Message, MessagePart, ThoughtPart
from ostler.core.prompt import TextContent
from ostler.core.protocols import BackendContext
from ostler.core.tools import ToolCall
from ostler.models.model_types import (
    CallChunk,
    FallbackStarted,
    ModelClient,
    ModelRequest,
    NoData,
    ReplyChunk,
    ReplyFinished,
    RequestNote,
    RetryScheduled,
    TextChunk,
    TextReclassified,
    ThoughtChunk,
    Usage,
)
from ostler.text.lazy_regex import lazy_regex

# Prefixes of ids that Ostler assigns; a model may not use them for its calls.
RESERVED_ID_PREFIXES = ("check-", "task-", "person-", "prompt-", "shown-", "edit-")
_VALID_ID = lazy_regex(r"[!-~]{1,128}\Z")

# Starts the calls of a piece; returns False if the turn must end instead.
StartCalls = Callable[[Message], Awaitable[bool]]


class ModelStep(msgspec.Struct, frozen=True):
    """The result of a step: the complete reply, its last piece, and the finish reason."""

    message: Message
    rest: Message
    finish_reason: str = ""


class ReplyBuilder:
    """Builds a message from chunks, keeping the order of its parts; each signed thought is a separate part.

    When calls start during streaming, the parts so far become a piece that is final.
    """

    def __init__(self, message_id: str, context: BackendContext) -> None:
        self.finish_reason = ""
        self.piece_id = message_id
        self._id = message_id
        self._context = context
        self._pieces: list[Message] = []
        self._parts: list[MessagePart] = []
        self._kind: type[TextContent] | type[ThoughtPart] = TextContent
        self._text_run: list[str] = []
        self._queue: list[ToolCall] = []
        self._ids: set[str] = set()
        self._started_ids: set[str] = set()

    @property
    def has_started_calls(self) -> bool:
        """Whether calls of the reply were already started."""
        return bool(self._pieces)

    @property
    def has_content(self) -> bool:
        """Whether anything came since the last piece."""
        return bool(self._parts or self._text_run)

    def add_text(self, text: str) -> None:
        self._add(TextContent, text)

    def add_thought(self, chunk: ThoughtChunk) -> None:
        self._add(ThoughtPart, chunk.text)
        if chunk.signature:
            self._end_run(chunk.signature)

    def add_call(self, chunk: CallChunk) -> None:
        self._end_run()
        call_id = self._new_id(chunk.id)
        self._ids.add(call_id)
        call = ToolCall(
            call_id, chunk.tool, _parse_arguments(chunk.arguments), raw=chunk.arguments, source=chunk.source
        )
        self._parts.append(CallPart(call))
        self._queue.append(call)

    def _new_id(self, requested: str) -> str:
        """Return the model's id for a call, or a new one if it is invalid, reserved or already used.

        A call runs once per id, and some servers reuse ids for new calls.
        """
        records, number = self._context.records(), len(self._ids) + len(self._started_ids)
        requested = requested if _VALID_ID.match(requested) and not requested.startswith(RESERVED_ID_PREFIXES) else ""
        used_ids = (self._ids, self._started_ids)
        while not requested or any(requested in ids for ids in used_ids) or records.result_seq(requested) is not None:
            requested = f"call_{records[-1].seq + 1}_{number}"
            number += 1
        return requested

    def reclassify_as_thought(self) -> str:
        """Turn the text since the last piece into reasoning, drop the calls in it, and return the reasoning."""
        self._end_run()
        text = "".join(part.text for part in self._parts if isinstance(part, TextContent | ThoughtPart))
        self.restart()
        self._add(ThoughtPart, text)
        return text

    def restart(self) -> None:
        """Drop everything since the last piece."""
        self._parts, self._text_run, self._queue = [], [], []
        self._ids = set()

    def take_queued_calls(self) -> list[ToolCall]:
        """Return the calls added since the last call of this method."""
        queue, self._queue = self._queue, []
        return queue

    def take_piece(self, model: str, *, truncated: bool = False) -> Message:
        """Return the parts since the last piece as a message; `model` is the name of the model that answered."""
        self._end_run()
        parts = [part for part in self._parts if not (truncated and isinstance(part, CallPart))]
        message = Message(self.piece_id, tuple(parts), model, truncated, continues=self.has_started_calls)
        self._pieces.append(message)
        self._started_ids |= self._ids
        self.restart()
        self.piece_id = f"{self._id}-{len(self._pieces)}"
        return message

    def message(self) -> Message:
        """Return all pieces as one message."""
        return join_pieces(self._pieces)

    def _add(self, kind: type[TextContent] | type[ThoughtPart], text: str) -> None:
        if kind is not self._kind:
            self._end_run()
            self._kind = kind
        self._text_run.append(text)

    def _end_run(self, signature: str = "") -> None:
        text, self._text_run = "".join(self._text_run), []
        if self._kind is ThoughtPart and (text or signature):
            self._parts.append(ThoughtPart(text, signature))
        elif text:
            self._parts.append(TextContent(text))


async def run_step(
    model: ModelClient, request: ModelRequest, context: BackendContext, message_id: str, start_calls: StartCalls
) -> ModelStep:
    """Query the model and return its reply. If the stream breaks, the partial reply is persisted.

    Raises `BackendError`, unless calls were already started: then the turn continues with their results.
    """
    reply = ReplyBuilder(message_id, context)
    interruption: BackendError | None = None
    complete = False
    try:
        await _stream_reply(model, request, context, reply, start_calls)
        complete = True
    except BackendError as error:
        if not (reply.has_started_calls and error.fault.code == "cut"):
            raise
        interruption = error
    finally:
        rest = _emit_rest(reply, context, model, complete=complete)
    if interruption:
        context.emit(Notice("warning", f"{interruption.fault.message}; continuing with the results of its calls"))
    return ModelStep(reply.message(), rest, reply.finish_reason)


async def _stream_reply(
    model: ModelClient, request: ModelRequest, context: BackendContext, reply: ReplyBuilder, start_calls: StartCalls
) -> None:
    """Stream the reply to its end, or until calls of it must not start."""
    chunks = model.stream(request)
    try:
        async for chunk in chunks:
            _apply_chunk(chunk, reply, context, model)
            if isinstance(chunk, CallChunk) and chunk.may_start:
                piece = reply.take_piece(model.name)
                context.emit(MessageDone(piece))
                if not await start_calls(piece):
                    return
    finally:
        if isinstance(chunks, AsyncGenerator):
            await chunks.aclose()


def _emit_rest(reply: ReplyBuilder, context: BackendContext, model: ModelClient, *, complete: bool) -> Message:
    """Emit the parts after the last piece; an empty message is emitted only if the whole reply is empty."""
    has_pieces = reply.has_started_calls
    rest = reply.take_piece(model.name, truncated=not complete)
    if rest.parts or (complete and not has_pieces):
        context.emit(MessageDone(rest))
    return rest


def _apply_chunk(chunk: ReplyChunk, reply: ReplyBuilder, context: BackendContext, model: ModelClient) -> None:
    match chunk:
        case TextChunk(text):
            _announce(reply, context)
            reply.add_text(text)
            context.emit(TextDelta(reply.piece_id, text))
        case ThoughtChunk(text):
            reply.add_thought(chunk)
            context.emit(ThoughtDelta(reply.piece_id, text))
        case TextReclassified():
            context.emit(MessageSnapshot(reply.piece_id, thought=reply.reclassify_as_thought()))
        case CallChunk():
            reply.add_call(chunk)
        case Usage():
            used = chunk.tokens_in + chunk.tokens_out
            context.emit(usage_event(chunk, model.name, used, model.context_limit))
        case NoData(seconds, reason):
            context.emit(Waiting(seconds, reason))
        case RetryScheduled() | FallbackStarted():
            _restart(chunk, reply, context)
        case RequestNote(text):
            context.emit(Notice("info", text))
        case ReplyFinished(reason, server_reason):
            reply.finish_reason = reason
            if server_reason:
                text = f"the server ended the reply with {server_reason!r}; it may be incomplete"
                context.emit(Notice("warning", text))


def _restart(chunk: RetryScheduled | FallbackStarted, reply: ReplyBuilder, context: BackendContext) -> None:
    if reply.has_started_calls:  # the same calls would run twice
        hint = 'the partial reply is saved; send "continue"'
        raise BackendError(f"{chunk.reason}; the reply is incomplete", code="cut", hint=hint)
    if reply.has_content:
        context.emit(MessageSnapshot(reply.piece_id))
    reply.restart()
    match chunk:
        case RetryScheduled(attempt, seconds, reason):
            context.emit(Retrying(attempt, seconds, reason))
        case FallbackStarted(profile, name, reason):
            context.emit(Notice("warning", f"{reason}; continuing with {name} (profile {profile})"))


def _announce(reply: ReplyBuilder, context: BackendContext) -> None:
    """Emit the calls before which the reply continues; calls at its end are emitted with the others."""
    for call in reply.take_queued_calls():
        context.emit(ToolCalled(call.without_source()))


def _parse_arguments(text: str) -> dict[str, Any]:
    """Parse the arguments, or return nothing if they are not a JSON object; the tool host then reads the raw text."""
    import json  # imported only when a model makes calls

    try:
        value = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
