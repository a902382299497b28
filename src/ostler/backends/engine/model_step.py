"""One step: a model call, streamed to the stage and gathered into a message."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import msgspec

from ostler.backends.engine.history import join_pieces
from ostler.core.errors import BackendError
from ostler.core.events import (
    MessageDone,
    Notice,
    Retrying,
    TextDelta,
    ThoughtDelta,
    ToolCalled,
    UsageReported,
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
    TextWasThought,
    ThoughtChunk,
    Usage,
)
from ostler.text.lazy_regex import lazy_regex

# The beginnings of ids that the house gives: no model may name a call so that one of ours counts as run.
RESERVED_ID_PREFIXES = ("check-", "task-", "person-", "prompt-")
_VALID_ID = lazy_regex(r"[!-~]{1,128}\Z")

# Has the calls of a piece start; False where the turn is to end instead.
StartCalls = Callable[[Message], Awaitable[bool]]


class ModelStep(msgspec.Struct, frozen=True):
    """What a step came to: the reply as one message, the last piece of it as it is kept, and why it ended."""

    message: Message
    rest: Message
    finish_reason: str = ""


class ReplyBuilder:
    """A message as it grows: its parts in the order in which they came, each sealed thought one of its own.

    Where its calls begin, what came so far is a piece of its own, which nothing takes back.
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
        """Whether calls of it were handed out."""
        return bool(self._pieces)

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
        call = ToolCall(call_id, chunk.tool, _parse_arguments(chunk.arguments), raw=chunk.arguments)
        self._parts.append(CallPart(call))
        self._queue.append(call)

    def _new_id(self, requested: str) -> str:
        """The id that the model gave unless it is taken or not a model's to give.

        A call runs once per id, and servers count anew: whoever asks for the same again wants it done again.
        """
        records, number = self._context.records(), len(self._ids) + len(self._started_ids)
        requested = requested if _VALID_ID.match(requested) and not requested.startswith(RESERVED_ID_PREFIXES) else ""
        taken = (self._ids, self._started_ids)
        while not requested or any(requested in ids for ids in taken) or records.result_seq(requested) is not None:
            requested = f"call_{records[-1].seq + 1}_{number}"
            number += 1
        return requested

    def reclassify_as_thought(self) -> None:
        """The words so far were reasoning, and no call in them was meant; one that began stays with its piece."""
        self._end_run()
        words = "".join(part.text for part in self._parts if isinstance(part, TextContent | ThoughtPart))
        self.restart()
        self._add(ThoughtPart, words)

    def restart(self) -> None:
        """Nothing that came since the last piece counts."""
        self._parts, self._text_run, self._queue = [], [], []
        self._ids = set()

    def take_queued_calls(self) -> list[ToolCall]:
        """The calls since this was last asked."""
        queue, self._queue = self._queue, []
        return queue

    def take_piece(self, model: str, *, truncated: bool = False) -> Message:
        """What came since the last piece; `model` is who answered, which is known at the end only."""
        self._end_run()
        parts = [part for part in self._parts if not (truncated and isinstance(part, CallPart))]
        message = Message(self.piece_id, tuple(parts), model, truncated, continues=self.has_started_calls)
        self._pieces.append(message)
        self._started_ids |= self._ids
        self.restart()
        self.piece_id = f"{self._id}-{len(self._pieces)}"
        return message

    def message(self) -> Message:
        """All pieces as one."""
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
    """The model's reply; a broken stream keeps what came, and raises, unless there are results to go on from."""
    reply = ReplyBuilder(message_id, context)
    cut: BackendError | None = None
    whole = False
    try:
        await _stream_reply(model, request, context, reply, start_calls)
        whole = True
    except BackendError as error:
        if not (reply.has_started_calls and error.fault.code == "cut"):
            raise
        cut = error
    finally:
        rest = _emit_rest(reply, context, model, complete=whole)
    if cut:
        context.emit(Notice("warning", f"{cut.fault.message}; going on from the results of its calls"))
    return ModelStep(reply.message(), rest, reply.finish_reason)


async def _stream_reply(
    model: ModelClient, request: ModelRequest, context: BackendContext, reply: ReplyBuilder, start_calls: StartCalls
) -> None:
    """To the end of the reply, or until calls of it may not begin: then nobody waits for more."""
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
    """What came after the last piece; nothing is no message, unless the whole reply is nothing."""
    begun = reply.has_started_calls
    rest = reply.take_piece(model.name, truncated=not complete)
    if rest.parts or (complete and not begun):
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
        case TextWasThought():
            reply.reclassify_as_thought()
        case CallChunk():
            reply.add_call(chunk)
        case Usage():
            context.emit(_to_usage_event(chunk, model))
        case NoData(seconds, reason):
            context.emit(Waiting(seconds, reason))
        case RetryScheduled() | FallbackStarted():
            _restart(chunk, reply, context)
        case RequestNote(text):
            context.emit(Notice("info", text))
        case ReplyFinished(reason, told):
            reply.finish_reason = reason
            if told:
                context.emit(Notice("warning", f"the server ended the reply with {told!r}, so it may not be whole"))


def _restart(chunk: RetryScheduled | FallbackStarted, reply: ReplyBuilder, context: BackendContext) -> None:
    if reply.has_started_calls:  # the same calls would run twice
        raise BackendError(f"{chunk.reason}, so the reply is cut", code="cut", hint="what came is kept; ask to go on")
    reply.restart()
    match chunk:
        case RetryScheduled(attempt, seconds, reason):
            context.emit(Retrying(attempt, seconds, reason))
        case FallbackStarted(profile, name, reason):
            context.emit(Notice("warning", f"{reason}; going on with {name} (profile {profile})"))


def _announce(reply: ReplyBuilder, context: BackendContext) -> None:
    """Calls that the reply goes on after are known before it is over; those at its end are told with the others."""
    for call in reply.take_queued_calls():
        context.emit(ToolCalled(call))


def _to_usage_event(usage: Usage, model: ModelClient) -> UsageReported:
    return UsageReported(
        model.name,
        usage.tokens_in,
        usage.tokens_out,
        usage.tokens_cached,
        usage.cost,
        context_used=usage.tokens_in + usage.tokens_out,
        context_limit=model.context_limit,
    )


def _parse_arguments(text: str) -> dict[str, Any]:
    """The arguments, or nothing when they are no JSON object: the tool host then looks at the raw text."""
    import json  # only a model that calls pays for it

    try:
        value = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
