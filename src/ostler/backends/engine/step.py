"""One step: a model call, streamed to the stage and gathered into a message."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import msgspec

from ostler.backends.engine.history import joined
from ostler.models.words import (
    Again,
    CallChunk,
    Chunk,
    Finished,
    Handed,
    ModelClient,
    Noted,
    Request,
    Silence,
    TextChunk,
    ThoughtChunk,
    Usage,
    WasThought,
)
from ostler.text.regex import regex
from ostler.vocabulary.errors import BackendError
from ostler.vocabulary.events import (
    MessageDone,
    Notice,
    Retrying,
    TextDelta,
    ThoughtDelta,
    ToolCalled,
    UsageReported,
    Waiting,
)
from ostler.vocabulary.message import Called, Message, Part, Thought
from ostler.vocabulary.prompt import Text
from ostler.vocabulary.seams import Stage
from ostler.vocabulary.tools import ToolCall

# The beginnings of ids that the house gives: no model may name a call so that one of ours counts as run.
OWN_IDS = ("check-", "task-", "person-", "prompt-")
_FIT = regex(r"[!-~]{1,128}\Z")

# Has the calls of a piece start; False where the turn is to end instead.
Begin = Callable[[Message], Awaitable[bool]]


class Step(msgspec.Struct, frozen=True):
    """What a step came to: the reply as one message, the last piece of it as it is kept, and why it ended."""

    message: Message
    rest: Message
    finish: str = ""


class Reply:
    """A message as it grows: its parts in the order in which they came, each sealed thought one of its own.

    Where its calls begin, what came so far is a piece of its own, which nothing takes back.
    """

    def __init__(self, message_id: str, stage: Stage) -> None:
        self.finish = ""
        self.piece_id = message_id
        self._id = message_id
        self._stage = stage
        self._pieces: list[Message] = []
        self._parts: list[Part] = []
        self._kind: type[Text] | type[Thought] = Text
        self._run: list[str] = []
        self._queue: list[ToolCall] = []
        self._ids: set[str] = set()
        self._begun_ids: set[str] = set()

    @property
    def has_begun(self) -> bool:
        """Whether calls of it were handed out."""
        return bool(self._pieces)

    def text(self, text: str) -> None:
        self._add(Text, text)

    def thought(self, chunk: ThoughtChunk) -> None:
        self._add(Thought, chunk.text)
        if chunk.seal:
            self._end_run(chunk.seal)

    def call(self, chunk: CallChunk) -> None:
        self._end_run()
        call_id = self._new_id(chunk.id)
        self._ids.add(call_id)
        call = ToolCall(call_id, chunk.tool, _arguments(chunk.arguments), raw=chunk.arguments)
        self._parts.append(Called(call))
        self._queue.append(call)

    def _new_id(self, wanted: str) -> str:
        """The id that the model gave unless it is taken or not a model's to give.

        A call runs once per id, and servers count anew: whoever asks for the same again wants it done again.
        """
        records, number = self._stage.records(), len(self._ids) + len(self._begun_ids)
        wanted = wanted if _FIT.match(wanted) and not wanted.startswith(OWN_IDS) else ""
        taken = (self._ids, self._begun_ids)
        while not wanted or any(wanted in ids for ids in taken) or records.result_seq(wanted) is not None:
            wanted = f"call_{records[-1].seq + 1}_{number}"
            number += 1
        return wanted

    def was_thought(self) -> None:
        """The words so far were reasoning, and no call in them was meant; one that began stays with its piece."""
        self._end_run()
        words = "".join(part.text for part in self._parts if isinstance(part, Text | Thought))
        self.begin_anew()
        self._add(Thought, words)

    def begin_anew(self) -> None:
        """Nothing that came since the last piece counts."""
        self._parts, self._run, self._queue = [], [], []
        self._ids = set()

    def take_queue(self) -> list[ToolCall]:
        """The calls since this was last asked."""
        queue, self._queue = self._queue, []
        return queue

    def piece(self, model: str, *, cut: bool = False) -> Message:
        """What came since the last piece; `model` is who answered, which is known at the end only."""
        self._end_run()
        parts = [part for part in self._parts if not (cut and isinstance(part, Called))]
        message = Message(self.piece_id, tuple(parts), model, cut, continues=self.has_begun)
        self._pieces.append(message)
        self._begun_ids |= self._ids
        self.begin_anew()
        self.piece_id = f"{self._id}-{len(self._pieces)}"
        return message

    def whole(self) -> Message:
        """All pieces as one."""
        return joined(self._pieces)

    def _add(self, kind: type[Text] | type[Thought], text: str) -> None:
        if kind is not self._kind:
            self._end_run()
            self._kind = kind
        self._run.append(text)

    def _end_run(self, seal: str = "") -> None:
        text, self._run = "".join(self._run), []
        if self._kind is Thought and (text or seal):
            self._parts.append(Thought(text, seal))
        elif text:
            self._parts.append(Text(text))


async def take_step(model: ModelClient, request: Request, stage: Stage, message_id: str, begin: Begin) -> Step:
    """The model's reply; a broken stream keeps what came, and raises, unless there are results to go on from."""
    reply = Reply(message_id, stage)
    cut: BackendError | None = None
    whole = False
    try:
        await _listen(model, request, stage, reply, begin)
        whole = True
    except BackendError as error:
        if not (reply.has_begun and error.fault.code == "cut"):
            raise
        cut = error
    finally:
        rest = _keep_rest(reply, stage, model, whole=whole)
    if cut:
        stage.emit(Notice("warning", f"{cut.fault.message}; going on from the results of its calls"))
    return Step(reply.whole(), rest, reply.finish)


async def _listen(model: ModelClient, request: Request, stage: Stage, reply: Reply, begin: Begin) -> None:
    """To the end of the reply, or until calls of it may not begin: then nobody waits for more."""
    chunks = model.stream(request)
    try:
        async for chunk in chunks:
            _hear(chunk, reply, stage, model)
            if isinstance(chunk, CallChunk) and chunk.begin:
                piece = reply.piece(model.name)
                stage.emit(MessageDone(piece))
                if not await begin(piece):
                    return
    finally:
        if isinstance(chunks, AsyncGenerator):
            await chunks.aclose()


def _keep_rest(reply: Reply, stage: Stage, model: ModelClient, *, whole: bool) -> Message:
    """What came after the last piece; nothing is no message, unless the whole reply is nothing."""
    begun = reply.has_begun
    rest = reply.piece(model.name, cut=not whole)
    if rest.parts or (whole and not begun):
        stage.emit(MessageDone(rest))
    return rest


def _hear(chunk: Chunk, reply: Reply, stage: Stage, model: ModelClient) -> None:
    match chunk:
        case TextChunk(text):
            _announce(reply, stage)
            reply.text(text)
            stage.emit(TextDelta(reply.piece_id, text))
        case ThoughtChunk(text):
            reply.thought(chunk)
            stage.emit(ThoughtDelta(reply.piece_id, text))
        case WasThought():
            reply.was_thought()
        case CallChunk():
            reply.call(chunk)
        case Usage():
            stage.emit(_usage(chunk, model))
        case Silence(seconds, reason):
            stage.emit(Waiting(seconds, reason))
        case Again() | Handed():
            _begin_anew(chunk, reply, stage)
        case Noted(text):
            stage.emit(Notice("info", text))
        case Finished(reason, told):
            reply.finish = reason
            if told:
                stage.emit(Notice("warning", f"the server ended the reply with {told!r}, so it may not be whole"))


def _begin_anew(chunk: Again | Handed, reply: Reply, stage: Stage) -> None:
    if reply.has_begun:  # the same calls would run twice
        raise BackendError(f"{chunk.reason}, so the reply is cut", code="cut", hint="what came is kept; ask to go on")
    reply.begin_anew()
    match chunk:
        case Again(attempt, seconds, reason):
            stage.emit(Retrying(attempt, seconds, reason))
        case Handed(profile, name, reason):
            stage.emit(Notice("warning", f"{reason}; going on with {name} (profile {profile})"))


def _announce(reply: Reply, stage: Stage) -> None:
    """Calls that the reply goes on after are known before it is over; those at its end are told with the others."""
    for call in reply.take_queue():
        stage.emit(ToolCalled(call))


def _usage(usage: Usage, model: ModelClient) -> UsageReported:
    return UsageReported(
        model.name,
        usage.tokens_in,
        usage.tokens_out,
        usage.tokens_cached,
        usage.cost,
        context_used=usage.tokens_in + usage.tokens_out,
        context_limit=model.context_limit,
    )


def _arguments(text: str) -> dict[str, Any]:
    """The arguments, or nothing when they are no JSON object: the tool host then looks at the raw text."""
    import json  # only a model that calls pays for it

    try:
        value = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
