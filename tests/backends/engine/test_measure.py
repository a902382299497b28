"""Estimates: the words of a dialect count, and the third reply's report sets them right."""

import random

import pytest
from engine_play import Model, Said, script

from ostler.backends.engine.measure import Meter
from ostler.models.dialects.wrap import with_dialect
from ostler.models.openai_request import Habits, chat_body
from ostler.models.words import Usage
from ostler.testing.fake_tool import FakeTool
from ostler.vocabulary.events import UsageReported


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
            tokens = int(len(chat_body("m", request, Habits(), {})) / self.ratio)
            self.counted.append(tokens)
            yield Usage(tokens, 50)


async def estimated(stage, dialect, ratio, results):
    """What each request was estimated at, and what it was counted as."""
    replies = [Said(f"step {n}", ("probe", {"subject": str(n)})).counted(1, 1) for n in range(len(results))]
    model = Counting(script(*replies, Said("done").counted(1, 1)), ratio=ratio)
    left = list(results)

    async def answer(params, context):
        return left.pop(0)

    await stage.open(with_dialect(model, dialect), [FakeTool("probe", answer), *map(FakeTool, "abcdefgh")])
    guesses = []
    asked = type(stage.engine)._view

    def view(self, built):
        made = asked(self, built)
        request = made.request

        def noted():
            guesses.append(made.tokens)
            return request()

        made.request = noted
        return made

    stage.engine._view = view.__get__(stage.engine)
    assert (await stage.turn("go")).reason == "done"
    return list(zip(guesses, model.counted, strict=True))


@pytest.mark.req("MD-8")
@pytest.mark.parametrize("dialect", ["native", "xnl", "text"])
@pytest.mark.parametrize("ratio", [2.2, 3.1, 4.6])
async def test_after_the_third_reply_estimates_are_within_a_tenth(stage, dialect, ratio):
    rng = random.Random(4)
    results = ["word " * rng.randint(50, 3_000) for _ in range(12)]
    pairs = await estimated(stage, dialect, ratio, results)
    assert len(pairs) == 13
    assert all(abs(guess - real) <= real * 0.1 for guess, real in pairs[3:]), pairs


@pytest.mark.req("MD-8", "MD-6")
@pytest.mark.parametrize("dialect", ["native", "xnl", "text"])
async def test_the_first_estimate_counts_the_dialects_own_words(stage, dialect):
    [(guess, real), *_] = await estimated(stage, dialect, 3.6, ["x"])
    assert abs(guess - real) <= real * 0.25


async def test_a_model_that_counts_nothing_is_estimated_all_the_same(stage):
    await stage.open(Model(script(Said("a"))))
    await stage.turn("go")
    [usage] = stage.past(UsageReported)
    assert usage.tokens_in == 0 and usage.context_used > 0


@pytest.mark.req("MD-8")
@pytest.mark.parametrize("nonsense", [0, 1, 10**9])
def test_counts_that_cannot_be_are_not_learned_from(nonsense):
    meter = Meter()
    meter.learn(10_000, 2_500)
    before = meter.tokens(12_000)
    meter.learn(12_000, nonsense)
    assert meter.tokens(12_000) == before
