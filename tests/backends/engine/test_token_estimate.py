"""Token estimates: they include the dialect's text and are calibrated by the reported usage."""

import random

import pytest
from engine_harness import Model, Reply, script

from ostler.backends.engine.token_estimate import TokenEstimator, message_size
from ostler.core.events import UsageReported
from ostler.core.message import CallPart, Message
from ostler.core.tools import ToolCall
from ostler.models.dialects.dialect import apply_dialect
from ostler.models.model_types import AssistantMessage, ModelRequest, Usage
from ostler.models.openai_request import ServerQuirks, chat_body
from ostler.testing.fake_tool import FakeTool


class CountingModel(Model):
    """Counts the tokens of each request at a fixed number of bytes per token."""

    def __init__(self, reply, *, ratio, limit=400_000):
        super().__init__(reply, limit=limit)
        self.ratio = ratio
        self.counted = []

    async def stream(self, request):
        async for chunk in super().stream(request):
            if not isinstance(chunk, Usage):
                yield chunk
                continue
            tokens = int(len(chat_body("m", request, ServerQuirks(), {})) / self.ratio)
            self.counted.append(tokens)
            yield Usage(tokens, 50)


@pytest.mark.parametrize(("arguments", "raw"), [({}, "{" * 50_000), ({"path": "x" * 500}, ""), ({}, "")])
def test_a_call_is_counted_by_the_size_that_is_sent(arguments, raw):
    message = AssistantMessage(Message("m", (CallPart(ToolCall("c1", "read", arguments, raw=raw)),)))
    empty = len(chat_body("m", ModelRequest("", (), ()), ServerQuirks(), {}))
    sent = len(chat_body("m", ModelRequest("", (message,), ()), ServerQuirks(), {})) - empty
    assert abs(message_size(message) - sent) < 120


async def estimates(harness, dialect, ratio, results):
    """Return the estimated and the counted tokens of each request."""
    replies = [Reply(f"step {n}", ("probe", {"subject": str(n)})).counted(1, 1) for n in range(len(results))]
    model = CountingModel(script(*replies, Reply("done").counted(1, 1)), ratio=ratio)
    remaining = list(results)

    async def answer(params, context):
        return remaining.pop(0)

    await harness.open(apply_dialect(model, dialect), [FakeTool("probe", answer), *map(FakeTool, "abcdefgh")])
    guesses = []
    make_view = type(harness.engine)._make_view

    def make_recording_view(self, *arguments):
        view = make_view(self, *arguments)
        request = view.request

        def record():
            guesses.append(view.tokens)
            return request()

        view.request = record
        return view

    harness.engine._make_view = make_recording_view.__get__(harness.engine)
    assert (await harness.turn("go")).reason == "done"
    return list(zip(guesses, model.counted, strict=True))


@pytest.mark.req("MD-8")
@pytest.mark.parametrize("dialect", ["native", "xnl", "text"])
@pytest.mark.parametrize("ratio", [2.2, 3.1, 4.6])
async def test_estimates_are_within_a_tenth_after_three_replies(harness, dialect, ratio):
    rng = random.Random(4)
    results = ["word " * rng.randint(50, 3_000) for _ in range(12)]
    pairs = await estimates(harness, dialect, ratio, results)
    assert len(pairs) == 13
    assert all(abs(guess - real) <= real * 0.1 for guess, real in pairs[3:]), pairs


@pytest.mark.req("MD-8", "MD-6")
@pytest.mark.parametrize("dialect", ["native", "xnl", "text"])
async def test_first_estimate_includes_the_dialects_text(harness, dialect):
    [(guess, real), *_] = await estimates(harness, dialect, 3.6, ["x"])
    assert abs(guess - real) <= real * 0.25


async def test_usage_is_estimated_without_reports(harness):
    await harness.open(Model(script(Reply("a"))))
    await harness.turn("go")
    [usage] = harness.events_of(UsageReported)
    assert usage.tokens_in == 0 and usage.context_used > 0


@pytest.mark.req("MD-8")
@pytest.mark.parametrize("nonsense", [0, 1, 10**9])
def test_implausible_counts_are_ignored(nonsense):
    estimator = TokenEstimator()
    estimator.calibrate(10_000, 2_500)
    before = estimator.request_tokens(12_000)
    estimator.calibrate(12_000, nonsense)
    assert estimator.request_tokens(12_000) == before
