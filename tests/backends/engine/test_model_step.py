"""One step: what a model's chunks become, in the message and on the stage."""

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
    ModelRequest,
    NoData,
    ReplyFinished,
    RetryScheduled,
    TextChunk,
    TextWasThought,
    ThoughtChunk,
    Usage,
)

READ = CallChunk("c1", "read", '{"path": "a"}')


class Model:
    """Says these chunks; an exception among them is raised there."""

    name = "m"
    context_limit = 1000

    def __init__(self, *chunks):
        self.chunks = chunks

    async def stream(self, request):
        for chunk in self.chunks:
            if isinstance(chunk, Exception):
                raise chunk
            yield chunk


class Stage:
    def __init__(self):
        self.events = []
        self.begun = []

    def emit(self, event):
        self.events.append(event)

    def records(self):
        return ListRecords(Envelope(seq, 0.0, event) for seq, event in enumerate(self.events, 1))

    def of(self, *kinds):
        return [event for event in self.events if isinstance(event, kinds)]


async def taken(model, harness, *, go_on=True):
    """One step of the model; the pieces whose calls begin are told to the stage as they are."""

    async def begin(piece):
        harness.begun.append(piece)
        return go_on

    return await run_step(model, ModelRequest("", ()), harness, "m1", begin)


async def step(*chunks):
    harness = Stage()
    taken_step = await taken(Model(*chunks, ReplyFinished("stop")), harness)
    assert taken_step.finish_reason == "stop"
    assert harness.of(MessageDone) == [MessageDone(taken_step.message)]
    return taken_step.message, harness


def kinds(message):
    return [type(part).__name__ for part in message.parts]


async def test_parts_stand_in_the_order_in_which_they_came():
    message, _ = await step(ThoughtChunk("hm"), TextChunk("a"), TextChunk("b"), READ, TextChunk("c"))
    assert kinds(message) == ["ThoughtPart", "TextContent", "CallPart", "TextContent"]
    assert message.text == "abc"
    assert message.calls[0].raw == '{"path": "a"}'


@pytest.mark.req("MD-4")
async def test_each_sealed_thought_keeps_its_seal():
    message, harness = await step(
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
    assert "".join(event.text for event in harness.of(ThoughtDelta)) == "one moretwoopen"


@pytest.mark.req("MD-5")
async def test_a_reply_that_begins_anew_voids_what_came():
    message, harness = await step(
        ThoughtChunk("first try", "seal"),
        RetryScheduled(2, 0.5, "it broke"),
        ThoughtChunk("second"),
        TextChunk("yes"),
    )
    assert message.parts == (ThoughtPart("second"), TextContent("yes"))
    assert harness.of(Retrying) == [Retrying(2, 0.5, "it broke")]


async def test_a_mere_silence_voids_nothing():
    message, harness = await step(ThoughtChunk("first"), NoData(5.0, "no data"), TextChunk("yes"))
    assert message.parts == (ThoughtPart("first"), TextContent("yes"))
    assert (harness.of(Waiting), harness.of(Retrying)) == ([Waiting(5.0, "no data")], [])


@pytest.mark.req("MD-4")
async def test_text_that_was_thought_becomes_it_and_its_calls_are_void():
    message, _ = await step(
        TextChunk("I could "), READ, TextChunk("but no"), TextWasThought(), ThoughtChunk("."), TextChunk("No.")
    )
    assert message.parts == (ThoughtPart("I could but no."), TextContent("No."))


@pytest.mark.req("MD-6")
async def test_a_call_is_known_as_soon_as_the_reply_goes_on_after_it():
    _, harness = await step(TextChunk("a"), READ, TextChunk("b"), CallChunk("c2", "list", "{}"))
    told = [type(event).__name__ for event in harness.events]
    assert told == ["TextDelta", "ToolCalled", "TextDelta", "MessageDone"]
    assert harness.of(ToolCalled)[0].call.id == "c1"


@pytest.mark.req("MD-5")
async def test_a_broken_stream_keeps_the_words_and_drops_the_calls():
    harness = Stage()
    with pytest.raises(BackendError):
        await taken(Model(TextChunk("half"), READ, BackendError("gone")), harness)
    (done,) = harness.of(MessageDone)
    assert (done.message.text, done.message.calls, done.message.truncated) == ("half", (), True)


async def test_a_stream_that_broke_before_a_word_leaves_no_message():
    harness = Stage()
    with pytest.raises(BackendError):
        await taken(Model(BackendError("gone")), harness)
    assert harness.events == []


@pytest.mark.req("MD-8")
@pytest.mark.parametrize("cost", [None, 0.25])
async def test_usage_has_its_cost_where_it_is_known(cost):
    _, harness = await step(TextChunk("a"), Usage(100, 20, 50, cost))
    assert harness.of(UsageReported) == [UsageReported("m", 100, 20, 50, cost, context_used=120, context_limit=1000)]


@pytest.mark.parametrize("arguments", ["", "not json", "[1]", "1", '{"a": NaN', "[" * 100_000])
async def test_broken_arguments_are_none_and_their_text_is_kept(arguments):
    message, _ = await step(CallChunk("c1", "read", arguments))
    assert isinstance(message.parts[0], CallPart)
    assert (message.calls[0].arguments, message.calls[0].raw) == ({}, arguments)


async def test_text_arrives_on_the_stage_as_it_comes():
    _, harness = await step(TextChunk("a"), TextChunk("b"))
    assert harness.of(TextDelta) == [TextDelta("m1", "a"), TextDelta("m1", "b")]


@pytest.mark.req("MD-5")
async def test_another_model_that_goes_on_is_told_and_signs_the_message():
    class Two(Model):
        async def stream(self, request):
            async for chunk in super().stream(request):
                if isinstance(chunk, FallbackStarted):
                    self.name = chunk.model
                yield chunk

    harness = Stage()
    handed = FallbackStarted("spare", "m2", "the quota is used up")
    model = Two(ThoughtChunk("void"), handed, TextChunk("a"), Usage(5, 1), ReplyFinished("stop"))
    message = (await taken(model, harness)).message
    assert (message.model, message.parts) == ("m2", (TextContent("a"),))
    assert harness.of(Notice) == [Notice("warning", "the quota is used up; going on with m2 (profile spare)")]
    assert [usage.model for usage in harness.of(UsageReported)] == ["m2"]


BEGIN = CallChunk("c1", "read", '{"path": "a"}', may_start=True)


@pytest.mark.req("MD-6")
async def test_a_reply_whose_calls_begin_is_kept_in_pieces_and_is_one_message():
    harness = Stage()
    model = Model(
        TextChunk("a"), READ, CallChunk("c2", "read", "{}", may_start=True), TextChunk("b"), ReplyFinished("stop")
    )
    step = await taken(model, harness)
    first, rest = (event.message for event in harness.of(MessageDone))
    assert ([call.id for call in first.calls], first.continues) == (["c1", "c2"], False)
    assert (rest.parts, rest.continues, rest) == ((TextContent("b"),), True, step.rest)
    assert harness.begun == [first]
    assert step.message.parts == (*first.parts, *rest.parts)
    assert [event.message_id for event in harness.of(TextDelta)] == [first.id, rest.id]
    assert first.id != rest.id


@pytest.mark.req("MD-6")
async def test_an_id_that_came_before_in_the_reply_is_given_anew():
    harness = Stage()
    step = await taken(Model(BEGIN, BEGIN, ReplyFinished("stop")), harness)
    first, second = step.message.calls
    assert first.id == "c1" != second.id
    assert len(harness.of(MessageDone)) == 2


@pytest.mark.req("MD-5")
@pytest.mark.parametrize("anew", [RetryScheduled(2, 0.5, "it broke"), FallbackStarted("spare", "m2", "it broke")])
async def test_nobody_begins_a_reply_anew_whose_calls_have_begun(anew):
    harness = Stage()
    step = await taken(Model(TextChunk("a"), BEGIN, TextChunk("b"), anew, BEGIN), harness)
    assert [call.id for call in step.message.calls] == ["c1"]
    assert (step.message.text, step.message.truncated) == ("ab", True)
    (told,) = harness.of(Notice)
    assert told.text == "it broke, so the reply is cut; going on from the results of its calls"


@pytest.mark.req("MD-5")
async def test_a_failure_that_is_no_cut_is_told_although_calls_have_begun():
    harness = Stage()
    with pytest.raises(BackendError, match="the key"):
        await taken(Model(BEGIN, TextChunk("b"), BackendError("the key is wrong", code="auth")), harness)
    assert [event.message.truncated for event in harness.of(MessageDone)] == [False, True]


@pytest.mark.req("MD-4")
async def test_a_call_that_has_begun_stays_where_the_words_turn_out_to_be_thoughts():
    harness = Stage()
    step = await taken(Model(TextChunk("a"), BEGIN, TextChunk("b"), READ, TextWasThought(), TextChunk("c")), harness)
    assert step.message.parts == (TextContent("a"), CallPart(step.message.calls[0]), ThoughtPart("b"), TextContent("c"))
    assert len(harness.begun) == 1


async def test_where_the_calls_may_not_begin_nobody_waits_for_more_of_the_reply():
    class Endless(Model):
        left = False

        async def stream(self, request):
            try:
                yield BEGIN
                yield TextChunk("never heard")
            finally:
                self.left = True

    model, harness = Endless(), Stage()
    step = await taken(model, harness, go_on=False)
    assert (model.left, step.message.text, len(harness.of(MessageDone))) == (True, "", 1)
