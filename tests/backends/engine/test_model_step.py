"""One model step: how chunks become a message and events."""

import pytest

from ostler.backends.engine.model_step import run_step
from ostler.core.errors import BackendError
from ostler.core.events import (
    Envelope,
    MessageDone,
    Notice,
    Retrying,
    TextDelta,
    ThoughtDelta,
    ToolCalled,
    UsageReported,
    Waiting,
)
from ostler.core.message import CallPart, ThoughtPart
from ostler.core.prompt import TextContent
from ostler.journal.records import ListRecords
from ostler.models.model_types import (
    CallChunk,
    FallbackStarted,
    ModelClientDefaults,
    ModelRequest,
    NoData,
    ReplyFinished,
    RetryScheduled,
    TextChunk,
    TextReclassified,
    ThoughtChunk,
    Usage,
)

READ = CallChunk("c1", "read", '{"path": "a"}')


class Model(ModelClientDefaults):
    """Streams these chunks; an exception among them is raised."""

    name = "m"
    context_limit = 1000

    def __init__(self, *chunks):
        self.chunks = chunks

    async def stream(self, request):
        for chunk in self.chunks:
            if isinstance(chunk, Exception):
                raise chunk
            yield chunk


class RecordingContext:
    def __init__(self):
        self.events = []
        self.started = []

    def emit(self, event):
        self.events.append(event)

    def records(self):
        return ListRecords(Envelope(seq, 0.0, event) for seq, event in enumerate(self.events, 1))

    def of(self, *kinds):
        return [event for event in self.events if isinstance(event, kinds)]


async def take_step(model, context, *, proceed=True):
    """Run one step; the pieces whose calls start are recorded in the context."""

    async def start_calls(piece):
        context.started.append(piece)
        return proceed

    return await run_step(model, ModelRequest("", ()), context, "m1", start_calls)


async def step(*chunks):
    context = RecordingContext()
    result = await take_step(Model(*chunks, ReplyFinished("stop")), context)
    assert result.finish_reason == "stop"
    assert context.of(MessageDone) == [MessageDone(result.message)]
    return result.message, context


def kinds(message):
    return [type(part).__name__ for part in message.parts]


async def test_parts_keep_their_order():
    message, _ = await step(ThoughtChunk("hm"), TextChunk("a"), TextChunk("b"), READ, TextChunk("c"))
    assert kinds(message) == ["ThoughtPart", "TextContent", "CallPart", "TextContent"]
    assert message.text == "abc"
    assert message.calls[0].raw == '{"path": "a"}'


@pytest.mark.req("MD-4")
async def test_signed_thoughts_keep_their_signatures():
    message, context = await step(
        ThoughtChunk("one "),
        ThoughtChunk("more", "seal-1"),
        ThoughtChunk("", "redacted:x"),
        ThoughtChunk("two", "seal-2"),
        TextChunk("so"),
        ThoughtChunk("open"),
    )
    assert message.parts == (
        ThoughtPart("one more", "seal-1"),
        ThoughtPart("", "redacted:x"),
        ThoughtPart("two", "seal-2"),
        TextContent("so"),
        ThoughtPart("open"),
    )
    assert "".join(event.text for event in context.of(ThoughtDelta)) == "one moretwoopen"


@pytest.mark.req("MD-5")
async def test_retry_discards_earlier_chunks():
    message, context = await step(
        ThoughtChunk("first try", "seal"),
        RetryScheduled(2, 0.5, "it broke"),
        ThoughtChunk("second"),
        TextChunk("yes"),
    )
    assert message.parts == (ThoughtPart("second"), TextContent("yes"))
    assert context.of(Retrying) == [Retrying(2, 0.5, "it broke")]


async def test_silence_discards_nothing():
    message, context = await step(ThoughtChunk("first"), NoData(5.0, "no data"), TextChunk("yes"))
    assert message.parts == (ThoughtPart("first"), TextContent("yes"))
    assert (context.of(Waiting), context.of(Retrying)) == ([Waiting(5.0, "no data")], [])


@pytest.mark.req("MD-4")
async def test_reclassified_text_becomes_thought_and_drops_calls():
    message, _ = await step(
        TextChunk("I could "), READ, TextChunk("but no"), TextReclassified(), ThoughtChunk("."), TextChunk("No.")
    )
    assert message.parts == (ThoughtPart("I could but no."), TextContent("No."))


@pytest.mark.req("MD-6")
async def test_call_is_announced_when_the_reply_continues():
    _, context = await step(TextChunk("a"), READ, TextChunk("b"), CallChunk("c2", "list", "{}"))
    types = [type(event).__name__ for event in context.events]
    assert types == ["TextDelta", "ToolCalled", "TextDelta", "MessageDone"]
    assert context.of(ToolCalled)[0].call.id == "c1"


@pytest.mark.req("MD-5")
async def test_broken_stream_keeps_text_and_drops_calls():
    context = RecordingContext()
    with pytest.raises(BackendError):
        await take_step(Model(TextChunk("half"), READ, BackendError("gone")), context)
    (done,) = context.of(MessageDone)
    assert (done.message.text, done.message.calls, done.message.truncated) == ("half", (), True)


async def test_stream_broken_before_any_text_leaves_no_message():
    context = RecordingContext()
    with pytest.raises(BackendError):
        await take_step(Model(BackendError("gone")), context)
    assert context.events == []


@pytest.mark.req("MD-8")
@pytest.mark.parametrize("cost", [None, 0.25])
async def test_usage_has_the_cost_if_known(cost):
    _, context = await step(TextChunk("a"), Usage(100, 20, 50, cost))
    assert context.of(UsageReported) == [UsageReported("m", 100, 20, 50, cost, context_used=120, context_limit=1000)]


@pytest.mark.parametrize("arguments", ["", "not json", "[1]", "1", '{"a": NaN', "[" * 100_000])
async def test_invalid_arguments_are_empty_and_their_text_is_kept(arguments):
    message, _ = await step(CallChunk("c1", "read", arguments))
    assert isinstance(message.parts[0], CallPart)
    assert (message.calls[0].arguments, message.calls[0].raw) == ({}, arguments)


async def test_text_is_emitted_as_it_arrives():
    _, context = await step(TextChunk("a"), TextChunk("b"))
    assert context.of(TextDelta) == [TextDelta("m1", "a"), TextDelta("m1", "b")]


@pytest.mark.req("MD-5")
async def test_fallback_is_reported_and_named_in_the_message():
    class FallbackNamedModel(Model):
        async def stream(self, request):
            async for chunk in super().stream(request):
                if isinstance(chunk, FallbackStarted):
                    self.name = chunk.model
                yield chunk

    context = RecordingContext()
    fallback = FallbackStarted("spare", "m2", "the quota is used up")
    model = FallbackNamedModel(ThoughtChunk("void"), fallback, TextChunk("a"), Usage(5, 1), ReplyFinished("stop"))
    message = (await take_step(model, context)).message
    assert (message.model, message.parts) == ("m2", (TextContent("a"),))
    assert context.of(Notice) == [Notice("warning", "the quota is used up; continuing with m2 (profile spare)")]
    assert [usage.model for usage in context.of(UsageReported)] == ["m2"]


STARTING_CALL = CallChunk("c1", "read", '{"path": "a"}', may_start=True)


@pytest.mark.req("MD-6")
async def test_reply_with_started_calls_is_persisted_in_pieces():
    context = RecordingContext()
    model = Model(
        TextChunk("a"), READ, CallChunk("c2", "read", "{}", may_start=True), TextChunk("b"), ReplyFinished("stop")
    )
    step = await take_step(model, context)
    first, rest = (event.message for event in context.of(MessageDone))
    assert ([call.id for call in first.calls], first.continues) == (["c1", "c2"], False)
    assert (rest.parts, rest.continues, rest) == ((TextContent("b"),), True, step.rest)
    assert context.started == [first]
    assert step.message.parts == (*first.parts, *rest.parts)
    assert [event.message_id for event in context.of(TextDelta)] == [first.id, rest.id]
    assert first.id != rest.id


@pytest.mark.req("MD-6")
async def test_duplicate_call_id_in_a_reply_is_replaced():
    context = RecordingContext()
    step = await take_step(Model(STARTING_CALL, STARTING_CALL, ReplyFinished("stop")), context)
    first, second = step.message.calls
    assert first.id == "c1" != second.id
    assert len(context.of(MessageDone)) == 2


@pytest.mark.req("MD-5")
@pytest.mark.parametrize("restart", [RetryScheduled(2, 0.5, "it broke"), FallbackStarted("spare", "m2", "it broke")])
async def test_reply_with_started_calls_is_not_restarted(restart):
    context = RecordingContext()
    step = await take_step(Model(TextChunk("a"), STARTING_CALL, TextChunk("b"), restart, STARTING_CALL), context)
    assert [call.id for call in step.message.calls] == ["c1"]
    assert (step.message.text, step.message.truncated) == ("ab", True)
    (notice,) = context.of(Notice)
    assert notice.text == "it broke; the reply is incomplete; continuing with the results of its calls"


@pytest.mark.req("MD-5")
async def test_other_failures_are_raised_after_calls_started():
    context = RecordingContext()
    with pytest.raises(BackendError, match="the key"):
        await take_step(Model(STARTING_CALL, TextChunk("b"), BackendError("the key is wrong", code="auth")), context)
    assert [event.message.truncated for event in context.of(MessageDone)] == [False, True]


@pytest.mark.req("MD-4")
async def test_started_call_survives_reclassification():
    context = RecordingContext()
    step = await take_step(
        Model(TextChunk("a"), STARTING_CALL, TextChunk("b"), READ, TextReclassified(), TextChunk("c")), context
    )
    assert step.message.parts == (TextContent("a"), CallPart(step.message.calls[0]), ThoughtPart("b"), TextContent("c"))
    assert len(context.started) == 1


async def test_stream_is_closed_if_calls_must_not_start():
    class CloseRecordingModel(Model):
        closed = False

        async def stream(self, request):
            try:
                yield STARTING_CALL
                yield TextChunk("never read")
            finally:
                self.closed = True

    model, context = CloseRecordingModel(), RecordingContext()
    step = await take_step(model, context, proceed=False)
    assert (model.closed, step.message.text, len(context.of(MessageDone))) == (True, "", 1)
