"""Every request fits the window: old results go first, then a summary stands for the beginning; the task goes on."""

import random
from itertools import pairwise

import pytest
from engine_play import Model, Said, script

from ostler.backends.engine.history import PRUNED_RESULT, History
from ostler.backends.engine.plugins.context_window import CompactionSettings
from ostler.backends.engine.token_estimate import TokenEstimator
from ostler.core.errors import BackendError
from ostler.core.events import Compacted, Notice, Pruned, Reverted, TodosChanged, ToolFinished, UsageReported
from ostler.core.sessions import Compact, Revert
from ostler.core.tools import Todo
from ostler.models.model_types import AssistantMessage, ReplyFinished, ToolResultsMessage, Usage, UserMessage
from ostler.models.openai_request import ServerQuirks, chat_body
from ostler.testing.fake_tool import FakeTool

pytestmark = pytest.mark.req("EN-8", "EN-9")

SUMMARY_ASKED = "You shorten the record"


def bytes_of(request):
    return len(chat_body("m", request, ServerQuirks(), {}))


class Window(Model):
    """A server with a real window: four bytes are a token, and what is too long is refused."""

    def __init__(self, reply, *, limit, claims=0, ratio=4.0, counts=10**9):
        super().__init__(reply, limit=claims or limit)
        self.window, self.ratio, self.refusals, self.counts = limit, ratio, 0, counts

    async def stream(self, request):
        tokens = int(bytes_of(request) / self.ratio)
        if tokens > self.window:
            self.refusals += 1
            raise BackendError("too long", code="context_length")
        self.counts -= 1
        async for chunk in super().stream(request):
            if isinstance(chunk, ReplyFinished) and self.counts >= 0:
                yield Usage(tokens, 10)
            yield chunk

    def asked(self):
        return [r for r in self.requests if not r.system.startswith(SUMMARY_ASKED)]


def worker(results, answer="done", notes="Objective: go on."):
    """Calls the tool so often, then answers; sums up when asked."""
    left = list(range(results))

    def reply(request):
        if request.system.startswith(SUMMARY_ASKED):
            return Said(notes)
        return Said("", ("probe", {"path": f"f{left.pop()}.py"})) if left else Said(answer)

    return reply


def giving(text):
    async def run(arguments, context):
        return text(arguments) if callable(text) else text

    return FakeTool("probe", run)


def texts(request):
    return "\n".join(
        block.text for said in request.history if isinstance(said, UserMessage) for block in said.blocks if block.text
    )


async def test_old_results_are_left_out_first_and_the_prefix_stays_until_then(harness):
    model = Window(worker(12), limit=8000)
    await harness.open(model, [giving(lambda a: f"{a['path']} " + "line of code\n" * 250)])
    assert (await harness.turn("read them all")).reason == "done"
    assert harness.past(Pruned)
    assert model.refusals == 0
    assert any(
        PRUNED_RESULT in r.for_model
        for s in model.asked()[-1].history
        if isinstance(s, ToolResultsMessage)
        for r in s.results
    )
    requests = model.asked()
    longer = [
        requests[n + 1].history[: len(requests[n].history)] == requests[n].history for n in range(len(requests) - 1)
    ]
    assert longer.count(False) == len(harness.past(Pruned)) + len(harness.past(Compacted)) - overlaps(harness)


def overlaps(harness):
    """Events that shrank for the same request."""
    kinds = [type(e).__name__ for e in harness.past(Pruned, Compacted, UsageReported)]
    return sum(a != "UsageReported" and b != "UsageReported" for a, b in pairwise(kinds))


async def test_no_result_that_was_kept_is_changed_on_disk(harness):
    model = Window(worker(12), limit=8000)
    await harness.open(model, [giving("line of code\n" * 250)])
    await harness.turn("read them all")
    assert all(len(event.result.for_model) == 13 * 250 for event in harness.past(ToolFinished))


async def test_a_summary_keeps_words_plan_files_and_notes(harness):
    model = Window(worker(30, notes="Objective: mend.\nNext steps: test."), limit=8000)
    await harness.open(model, [giving("x = 1\n" * 300)], compaction=CompactionSettings(prune=False))
    harness.session.emit(TodosChanged((Todo("1", "look", "completed"), Todo("2", "mend it", "in_progress"))))
    assert (await harness.turn("Never touch config.py. Mend the parser.")).reason == "done"
    summary = harness.past(Compacted)[-1].summary
    for part in ("Never touch config.py. Mend the parser.", "[~] mend it", "[x] look", "f20.py", "Next steps: test."):
        assert part in summary
    assert model.refusals == 0
    assert summary in texts(model.asked()[-1])


async def test_when_the_summary_cannot_be_asked_for_deeds_stand_in(harness):
    work = worker(30)
    model = Window(lambda r: Said(fails="overloaded") if r.system.startswith(SUMMARY_ASKED) else work(r), limit=8000)
    await harness.open(model, [giving("x = 1\n" * 300)], compaction=CompactionSettings(prune=False))
    assert (await harness.turn("Mend the parser.")).reason == "done"
    summary = harness.past(Compacted)[-1].summary
    assert "What was done last:\n" in summary
    assert "called probe" in summary
    assert "Mend the parser." in summary


async def test_a_summary_is_counted_and_told(harness):
    model = Window(worker(30), limit=8000)
    await harness.open(model, [giving("x = 1\n" * 300)], compaction=CompactionSettings(prune=False))
    await harness.turn("go")
    assert sum(usage.tokens_in > 0 for usage in harness.past(UsageReported)) == len(model.requests)
    assert "the conversation was shortened from about" in harness.past(Notice)[0].text


@pytest.mark.parametrize("window", [8000, 9000, 12_000, 32_000, 128_000])
@pytest.mark.parametrize("kind", ["ascii", "chinese", "huge results", "huge prompt", "many prompts", "huge arguments"])
async def test_any_history_fits_any_window(harness, window, kind):
    random.seed(window)
    letters = "代码" if kind == "chinese" else "code "
    amount = window // 2 if kind in ("ascii", "chinese") else window * 8 if kind == "huge results" else 50
    left, steps = list(range(8)), []

    def reply(request):
        steps.append(request)
        if request.system.startswith(SUMMARY_ASKED):
            return Said("notes " * random.randrange(3000))
        if not left or random.random() < 0.2:
            return Said("done")
        left.pop()
        path = f"{len(steps)}" * (window * 2 if kind == "huge arguments" else 1)
        return Said("I look.", ("probe", {"path": path}))

    model = Window(reply, limit=window, ratio=2.5)
    await harness.open(model, [giving(lambda a: (letters * amount)[:amount])])
    for n in range(40 if kind == "many prompts" else 4):
        left.extend(range(5))
        said = f"{n} " + "please " * (window if kind == "huge prompt" and n == 1 else window // 40)
        ended = await harness.turn(said)
        assert (ended.reason, str(ended.fault or "")) == ("done", "")
    assert all(bytes_of(r) / model.ratio <= window for r in model.asked()[3:])
    assert model.refusals <= 3


async def test_a_window_smaller_than_told_is_learned_by_two_tries_at_most(harness):
    model = Window(worker(20), limit=9000, claims=20_000)
    await harness.open(model, [giving("x = 1\n" * 300)])
    assert (await harness.turn("go")).reason == "done"
    assert 1 <= model.refusals <= 2


async def test_what_cannot_be_shrunk_is_tried_no_more_than_twice(harness):
    model = Model(script(Said(fails="context_length")), limit=32_000)
    await harness.open(model)
    ended = await harness.turn("go")
    assert (ended.reason, ended.fault.code) == ("failed", "context_length")
    assert len(model.requests) <= 3


async def test_without_auto_nothing_happens_by_itself(harness):
    model = Window(worker(12), limit=8000)
    await harness.open(model, [giving("line of code\n" * 250)], compaction=CompactionSettings(auto=False))
    assert (await harness.turn("go")).fault.code == "context_length"
    assert harness.past(Pruned, Compacted) == []


async def test_by_hand_and_taken_back(harness):
    model = Window(worker(6), limit=32_000)
    await harness.open(model, [giving("x = 1\n" * 300)])
    await harness.turn("one")
    before = History().follow(harness.session.records()).messages
    mark = harness.session.records()[-1].seq
    assert await harness.session.apply(Compact())
    assert len(harness.past(Compacted)) == 1
    assert len(History().follow(harness.session.records()).messages) < len(before)
    assert await harness.session.apply(Revert(mark))
    await harness.turn("two")
    assert model.requests[-1].history[: len(before)] == before
    assert harness.past(Compacted, Reverted) == []


async def test_there_is_nothing_to_compact_before_anything_was_said(harness):
    await harness.open(Model(script(Said("hi"))))
    assert not await harness.session.apply(Compact())


async def test_a_fixed_part_that_fills_the_window_is_told(harness):
    model = Window(worker(9), limit=8000)
    tools = [giving("x = 1\n" * 900), *(FakeTool(f"tool_{n}_" + "x" * 400) for n in range(30))]
    await harness.open(model, tools)
    ended = await harness.turn("go")
    assert ended.reason == "failed"
    assert "what every request begins with takes about" in str(ended.fault)


@pytest.mark.req("MD-8")
@pytest.mark.parametrize("ratio", [1.6, 2.5, 3.3, 4.0, 5.2])
async def test_the_estimate_is_right_after_the_third_reply(harness, ratio):
    """A server that counts three times and then no more: what is estimated then is what it would have counted."""
    model = Window(worker(12), limit=200_000, ratio=ratio, counts=3)
    code = "def main(argument):\n    return 1\n"
    await harness.open(model, [giving(lambda a: code * random.Random(a["path"]).randrange(200))])
    await harness.turn("go")
    guessed = [usage.context_used for usage in harness.past(UsageReported)][3:-1]
    results = [len(event.result.for_model) / ratio for event in harness.past(ToolFinished)][3:]
    real = [bytes_of(request) / ratio for request in model.requests[4:]]
    errors = [abs(guess + more - count) / count for guess, more, count in zip(guessed, results, real, strict=True)]
    assert len(errors) == 9
    assert max(errors) <= 0.1


def test_a_count_that_nobody_can_mean_is_not_believed():
    meter = TokenEstimator()
    for tokens in (0, 1, 10**9):
        meter.calibrate(4000, tokens)
    assert meter.request_tokens(3600) == 1000


async def test_a_summary_that_would_be_no_shorter_is_not_made(harness):
    model = Model(script(Said("one"), Said("two"), Said("notes")), limit=64_000)
    await harness.open(model)
    for words in ("first words", "second words"):
        await harness.turn(words)
    before = History().follow(harness.session.records()).messages
    assert not await harness.session.apply(Compact())
    assert harness.past(Compacted, Notice) == []
    assert History().follow(harness.session.records()).messages == before


ONE, THREE = (" ".join(map(str, range(first, first + 400))) for first in (1000, 3000))


async def test_a_summary_can_be_taken_back(harness):
    """Also over a later turn, one after the other, and a session that is resumed sees the same."""
    model = Model(script(Said(ONE), Said("two"), Said("notes"), Said(THREE), Said("notes"), Said("four")), limit=64_000)
    await harness.open(model)
    for words in ("first words", "second words"):
        await harness.turn(words)
    assert not await harness.session.apply(Compact(undo=True))
    assert await harness.session.apply(Compact())
    await harness.turn("third words")
    assert await harness.session.apply(Compact())
    whole = ["first words", ONE, "second words", "two", "third words", THREE]
    seen = []
    for _ in range(2):
        assert await harness.session.apply(Compact(undo=True))
        fresh = History().follow(harness.session.records()).messages
        assert fresh == harness.engine._history.follow(harness.session.records()).messages
        seen.append([text_of(said) for said in fresh])
    assert seen[0][0].startswith("[Summary") and seen[0][-2:] == whole[-2:]
    assert seen[1] == whole
    assert not await harness.session.apply(Compact(undo=True))
    await harness.turn("fourth words")
    assert [text_of(said) for said in model.requests[-1].history] == [*whole, "fourth words"]


def text_of(said):
    return said.message.text if isinstance(said, AssistantMessage) else said.blocks[0].text


def newest_results(request):
    return next(said.results for said in reversed(request.history) if isinstance(said, ToolResultsMessage))


@pytest.mark.parametrize("prune", [True, False])
@pytest.mark.parametrize(("window", "reads"), [(8192, 1), (16_384, 1), (32_768, 3), (8192, 12)])
async def test_results_that_the_model_has_not_seen_keep_head_and_tail(harness, window, reads, prune):
    """However large they are, and whatever came before them."""
    calls = [("probe", {"path": f"f{n}.py"}) for n in range(reads)]
    small = Said("", ("probe", {"path": "small.py"}))
    model = Window(script(small, Said("", *calls), Said("done"), small, Said("", *calls), Said("done")), limit=window)
    body = "a line of a file, of which there are many\n" * 1285
    text = {f"f{n}.py": f"head {n}\n{body}tail {n}" for n in range(reads)}
    await harness.open(
        model, [giving(lambda a: text.get(a["path"], "little"))], compaction=CompactionSettings(prune=prune)
    )
    for words in ("read it", "and again"):
        assert (await harness.turn(words)).reason == "done"
        results = newest_results(model.asked()[-1])
        assert len(results) == reads
        for number, result in enumerate(results):
            assert result.for_model.startswith(f"head {number}\n")
            assert result.for_model.endswith(f"tail {number}")
        room = window - 1000
        assert bytes_of(model.asked()[-1]) / 4 > room * 0.2, "much of it fits"
    assert model.refusals == 0


async def test_what_people_said_has_the_room_that_nothing_else_needs(harness):
    """A prompt larger than the window is cut no more than it must be."""
    model = Window(lambda request: Said("ok"), limit=8000)
    await harness.open(model, [])
    await harness.turn(" ".join(f"word{n}" for n in range(9000)))
    assert bytes_of(model.requests[-1]) / model.ratio > 8000 * 0.25
