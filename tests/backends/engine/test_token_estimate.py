"""Estimates: the words of a dialect count, and the third reply's report sets them right."""

import random

import pytest
from engine_play import Model, Said, script

from ostler.backends.engine.token_estimate import TokenEstimator
from ostler.core.events import UsageReported
from ostler.models.dialects.dialect import apply_dialect
from ostler.models.model_types import Usage
from ostler.models.openai_request import ServerQuirks, chat_body
from ostler.testing.fake_tool import FakeTool


class Counting(Model):
    """Counts what it is really sent, at so many bytes a token."""

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


async def estimated(harness, dialect, ratio, results):
    """What each request was estimated at, and what it was counted as."""
    replies = [Said(f"step {n}", ("probe", {"subject": str(n)})).counted(1, 1) for n in range(len(results))]
    model = Counting(script(*replies, Said("done").counted(1, 1)), ratio=ratio)
    left = list(results)

    async def answer(params, context):
        return left.pop(0)

    await harness.open(apply_dialect(model, dialect), [FakeTool("probe", answer), *map(FakeTool, "abcdefgh")])
    guesses = []
    asked = type(harness.engine)._make_view

    def view(self, built):
        made = asked(self, built)
        request = made.request

        def noted():
            guesses.append(made.tokens)
            return request()

        made.request = noted
        return made

    harness.engine._make_view = view.__get__(harness.engine)
    assert (await harness.turn("go")).reason == "done"
    return list(zip(guesses, model.counted, strict=True))


@pytest.mark.req("MD-8")
@pytest.mark.parametrize("dialect", ["native", "xnl", "text"])
@pytest.mark.parametrize("ratio", [2.2, 3.1, 4.6])
async def test_after_the_third_reply_estimates_are_within_a_tenth(harness, dialect, ratio):
    rng = random.Random(4)
    results = ["word " * rng.randint(50, 3_000) for _ in range(12)]
    pairs = await estimated(harness, dialect, ratio, results)
    assert len(pairs) == 13
    assert all(abs(guess - real) <= real * 0.1 for guess, real in pairs[3:]), pairs


@pytest.mark.req("MD-8", "MD-6")
@pytest.mark.parametrize("dialect", ["native", "xnl", "text"])
async def test_the_first_estimate_counts_the_dialects_own_words(harness, dialect):
    [(guess, real), *_] = await estimated(harness, dialect, 3.6, ["x"])
    assert abs(guess - real) <= real * 0.25


async def test_a_model_that_counts_nothing_is_estimated_all_the_same(harness):
    await harness.open(Model(script(Said("a"))))
    await harness.turn("go")
    [usage] = harness.past(UsageReported)
    assert usage.tokens_in == 0 and usage.context_used > 0


@pytest.mark.req("MD-8")
@pytest.mark.parametrize("nonsense", [0, 1, 10**9])
def test_counts_that_cannot_be_are_not_learned_from(nonsense):
    meter = TokenEstimator()
    meter.calibrate(10_000, 2_500)
    before = meter.request_tokens(12_000)
    meter.calibrate(12_000, nonsense)
    assert meter.request_tokens(12_000) == before
