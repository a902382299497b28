"""Every request fits the context window: old results are pruned first, then the beginning is compacted."""

import random
from itertools import pairwise

import pytest
from engine_harness import Model, Reply, script

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

SUMMARY_PROMPT = "You shorten the conversation"


def bytes_of(request):
    return len(chat_body("m", request, ServerQuirks(), {}))


class LimitedServer(Model):
    """A model with a real window: four bytes per token by default, and longer requests are refused."""

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

    def turn_requests(self):
        return [r for r in self.requests if not r.system.startswith(SUMMARY_PROMPT)]


def worker(results, answer="done", notes="Objective: go on."):
    """Call the tool `results` times, then answer; write notes when asked for a summary."""
    remaining = list(range(results))

    def reply(request):
        if request.system.startswith(SUMMARY_PROMPT):
            return Reply(notes)
        return Reply("", ("probe", {"path": f"f{remaining.pop()}.py"})) if remaining else Reply(answer)

    return reply


def probe_tool(text):
    async def run(arguments, context):
        return text(arguments) if callable(text) else text

    return FakeTool("probe", run)


def texts(request):
    return "\n".join(
        block.text
        for message in request.history
        if isinstance(message, UserMessage)
        for block in message.blocks
        if block.text
    )


async def test_old_results_are_pruned_first_and_requests_share_a_prefix(harness):
    model = LimitedServer(worker(12), limit=8000)
    await harness.open(model, [probe_tool(lambda a: f"{a['path']} " + "line of code\n" * 250)])
    assert (await harness.turn("read them all")).reason == "done"
    assert harness.events_of(Pruned)
    assert model.refusals == 0
    assert any(
        PRUNED_RESULT in r.for_model
        for s in model.turn_requests()[-1].history
        if isinstance(s, ToolResultsMessage)
        for r in s.results
    )
    requests = model.turn_requests()
    longer = [
        requests[n + 1].history[: len(requests[n].history)] == requests[n].history for n in range(len(requests) - 1)
    ]
    assert longer.count(False) == len(harness.events_of(Pruned)) + len(harness.events_of(Compacted)) - overlaps(harness)


def overlaps(harness):
    """Count the events that shrank the same request."""
    kinds = [type(e).__name__ for e in harness.events_of(Pruned, Compacted, UsageReported)]
    return sum(a != "UsageReported" and b != "UsageReported" for a, b in pairwise(kinds))


async def test_stored_results_are_not_changed(harness):
    model = LimitedServer(worker(12), limit=8000)
    await harness.open(model, [probe_tool("line of code\n" * 250)])
    await harness.turn("read them all")
    assert all(len(event.result.for_model) == 13 * 250 for event in harness.events_of(ToolFinished))


async def test_summary_has_messages_plan_files_and_notes(harness):
    model = LimitedServer(worker(30, notes="Objective: fix.\nNext steps: test."), limit=8000)
    await harness.open(model, [probe_tool("x = 1\n" * 300)], compaction=CompactionSettings(prune=False))
    harness.session.emit(TodosChanged((Todo("1", "look", "completed"), Todo("2", "fix it", "in_progress"))))
    assert (await harness.turn("Never touch config.py. Fix the parser.")).reason == "done"
    summary = harness.events_of(Compacted)[-1].summary
    for part in ("Never touch config.py. Fix the parser.", "[~] fix it", "[x] look", "f20.py", "Next steps: test."):
        assert part in summary
    assert model.refusals == 0
    assert summary in texts(model.turn_requests()[-1])


async def test_summary_lists_actions_if_the_model_fails(harness):
    work = worker(30)
    model = LimitedServer(
        lambda r: Reply(fails="overloaded") if r.system.startswith(SUMMARY_PROMPT) else work(r), limit=8000
    )
    await harness.open(model, [probe_tool("x = 1\n" * 300)], compaction=CompactionSettings(prune=False))
    assert (await harness.turn("Fix the parser.")).reason == "done"
    summary = harness.events_of(Compacted)[-1].summary
    assert "Last actions:\n" in summary
    assert "called probe" in summary
    assert "Fix the parser." in summary


async def test_summary_is_counted_and_reported(harness):
    model = LimitedServer(worker(30), limit=8000)
    await harness.open(model, [probe_tool("x = 1\n" * 300)], compaction=CompactionSettings(prune=False))
    await harness.turn("go")
    assert sum(usage.tokens_in > 0 for usage in harness.events_of(UsageReported)) == len(model.requests)
    assert "the conversation was compacted from about" in harness.events_of(Notice)[0].text


@pytest.mark.parametrize("window", [8000, 9000, 12_000, 32_000, 128_000])
@pytest.mark.parametrize("kind", ["ascii", "chinese", "huge results", "huge prompt", "many prompts", "huge arguments"])
@pytest.mark.sampled
async def test_any_history_fits_any_window(harness, window, kind):
    random.seed(window)
    letters = "代码" if kind == "chinese" else "code "
    amount = window // 2 if kind in ("ascii", "chinese") else window * 8 if kind == "huge results" else 50
    remaining, steps = list(range(8)), []

    def reply(request):
        steps.append(request)
        if request.system.startswith(SUMMARY_PROMPT):
            return Reply("notes " * random.randrange(3000))
        if not remaining or random.random() < 0.2:
            return Reply("done")
        remaining.pop()
        path = f"{len(steps)}" * (window * 2 if kind == "huge arguments" else 1)
        return Reply("I look.", ("probe", {"path": path}))

    model = LimitedServer(reply, limit=window, ratio=2.5)
    await harness.open(model, [probe_tool(lambda a: (letters * amount)[:amount])])
    for n in range(40 if kind == "many prompts" else 4):
        remaining.extend(range(5))
        text = f"{n} " + "please " * (window if kind == "huge prompt" and n == 1 else window // 40)
        ended = await harness.turn(text)
        assert (ended.reason, str(ended.fault or "")) == ("done", "")
    assert all(bytes_of(r) / model.ratio <= window for r in model.turn_requests()[3:])
    assert model.refusals <= 3


async def test_smaller_window_is_learned_within_two_retries(harness):
    model = LimitedServer(worker(20), limit=9000, claims=20_000)
    await harness.open(model, [probe_tool("x = 1\n" * 300)])
    assert (await harness.turn("go")).reason == "done"
    assert 1 <= model.refusals <= 2


async def test_request_that_cannot_shrink_is_retried_at_most_twice(harness):
    model = Model(script(Reply(fails="context_length")), limit=32_000)
    await harness.open(model)
    ended = await harness.turn("go")
    assert (ended.reason, ended.fault.code) == ("failed", "context_length")
    assert len(model.requests) <= 3


async def test_without_auto_nothing_is_compacted(harness):
    model = LimitedServer(worker(12), limit=8000)
    await harness.open(model, [probe_tool("line of code\n" * 250)], compaction=CompactionSettings(auto=False))
    assert (await harness.turn("go")).fault.code == "context_length"
    assert harness.events_of(Pruned, Compacted) == []


@pytest.mark.req("EN-8")
async def test_short_conversation_is_not_compacted_and_costs_no_model_call(harness):
    model = Model(script(Reply("Hello there."), Reply("Fine.")), limit=32_000)
    await harness.open(model)
    await harness.turn("hi")
    await harness.turn("how are you?")
    assert not await harness.session.apply(Compact())
    assert len(model.requests) == 2
    assert harness.events_of(Compacted) == []


async def test_manual_compaction_and_revert(harness):
    model = LimitedServer(worker(6), limit=32_000)
    await harness.open(model, [probe_tool("x = 1\n" * 300)])
    await harness.turn("one")
    before = History().follow(harness.session.records()).messages
    mark = harness.session.records()[-1].seq
    assert await harness.session.apply(Compact())
    assert len(harness.events_of(Compacted)) == 1
    assert len(History().follow(harness.session.records()).messages) < len(before)
    assert await harness.session.apply(Revert(mark))
    await harness.turn("two")
    assert model.requests[-1].history[: len(before)] == before
    assert harness.events_of(Compacted, Reverted) == []


async def test_empty_session_is_not_compacted(harness):
    await harness.open(Model(script(Reply("hi"))))
    assert not await harness.session.apply(Compact())


async def test_prefix_that_fills_the_window_is_refused(harness):
    model = LimitedServer(worker(9), limit=8000)
    tools = [probe_tool("x = 1\n" * 900), *(FakeTool(f"tool_{n}_" + "x" * 400) for n in range(30))]
    await harness.open(model, tools)
    ended = await harness.turn("go")
    assert ended.reason == "failed"
    assert "the system prompt and tools take about" in str(ended.fault)


@pytest.mark.req("MD-8")
@pytest.mark.parametrize("ratio", [1.6, 2.5, 3.3, 4.0, 5.2])
async def test_estimate_is_accurate_after_three_replies(harness, ratio):
    """After three reports, estimates match what the server would count."""
    model = LimitedServer(worker(12), limit=200_000, ratio=ratio, counts=3)
    code = "def main(argument):\n    return 1\n"
    await harness.open(model, [probe_tool(lambda a: code * random.Random(a["path"]).randrange(200))])
    await harness.turn("go")
    guessed = [usage.context_used for usage in harness.events_of(UsageReported)][3:-1]
    results = [len(event.result.for_model) / ratio for event in harness.events_of(ToolFinished)][3:]
    real = [bytes_of(request) / ratio for request in model.requests[4:]]
    errors = [abs(guess + result - count) / count for guess, result, count in zip(guessed, results, real, strict=True)]
    assert len(errors) == 9
    assert max(errors) <= 0.1


def test_implausible_counts_are_ignored():
    estimator = TokenEstimator()
    for tokens in (0, 1, 10**9):
        estimator.calibrate(4000, tokens)
    assert estimator.request_tokens(3600) == 1000


async def test_summary_that_is_not_shorter_is_not_made(harness):
    model = Model(script(Reply("one"), Reply("two"), Reply("notes")), limit=64_000)
    await harness.open(model)
    for text in ("first words", "second words"):
        await harness.turn(text)
    before = History().follow(harness.session.records()).messages
    assert not await harness.session.apply(Compact())
    assert harness.events_of(Compacted, Notice) == []
    assert History().follow(harness.session.records()).messages == before


ONE, THREE = (" ".join(map(str, range(first, first + 400))) for first in (1000, 3000))


async def test_compaction_can_be_undone(harness):
    """Also after a later turn, repeatedly, and with the same result in a resumed session."""
    model = Model(
        script(Reply(ONE), Reply("two"), Reply("notes"), Reply(THREE), Reply("notes"), Reply("four")), limit=64_000
    )
    await harness.open(model)
    for text in ("first words", "second words"):
        await harness.turn(text)
    assert not await harness.session.apply(Compact(undo=True))
    assert await harness.session.apply(Compact())
    await harness.turn("third words")
    assert await harness.session.apply(Compact())
    complete = ["first words", ONE, "second words", "two", "third words", THREE]
    seen = []
    for _ in range(2):
        assert await harness.session.apply(Compact(undo=True))
        messages = History().follow(harness.session.records()).messages
        assert messages == harness.engine._history.follow(harness.session.records()).messages
        seen.append([text_of(message) for message in messages])
    assert seen[0][0].startswith("[Summary") and seen[0][-2:] == complete[-2:]
    assert seen[1] == complete
    assert not await harness.session.apply(Compact(undo=True))
    await harness.turn("fourth words")
    assert [text_of(message) for message in model.requests[-1].history] == [*complete, "fourth words"]


def text_of(message):
    return message.message.text if isinstance(message, AssistantMessage) else message.blocks[0].text


def newest_results(request):
    return next(message.results for message in reversed(request.history) if isinstance(message, ToolResultsMessage))


@pytest.mark.parametrize("prune", [True, False])
@pytest.mark.parametrize(("window", "reads"), [(8192, 1), (16_384, 1), (32_768, 3), (8192, 12)])
async def test_unseen_results_keep_head_and_tail(harness, window, reads, prune):
    """Whatever their size and whatever came before them."""
    calls = [("probe", {"path": f"f{n}.py"}) for n in range(reads)]
    small = Reply("", ("probe", {"path": "small.py"}))
    model = LimitedServer(
        script(small, Reply("", *calls), Reply("done"), small, Reply("", *calls), Reply("done")), limit=window
    )
    body = "a line of a file, of which there are many\n" * 1285
    text = {f"f{n}.py": f"head {n}\n{body}tail {n}" for n in range(reads)}
    await harness.open(
        model, [probe_tool(lambda a: text.get(a["path"], "little"))], compaction=CompactionSettings(prune=prune)
    )
    for prompt in ("read it", "and again"):
        assert (await harness.turn(prompt)).reason == "done"
        results = newest_results(model.turn_requests()[-1])
        assert len(results) == reads
        for number, result in enumerate(results):
            assert result.for_model.startswith(f"head {number}\n")
            assert result.for_model.endswith(f"tail {number}")
        room = window - 1000
        assert bytes_of(model.turn_requests()[-1]) / 4 > room * 0.2, "much of it fits"
    assert model.refusals == 0


async def test_user_messages_use_the_free_space(harness):
    """A prompt larger than the window is truncated only as much as necessary."""
    model = LimitedServer(lambda request: Reply("ok"), limit=8000)
    await harness.open(model, [])
    await harness.turn(" ".join(f"word{n}" for n in range(9000)))
    assert bytes_of(model.requests[-1]) / model.ratio > 8000 * 0.25
