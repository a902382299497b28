"""Whatever happened, and wherever it was cut off: what is sent next is valid for both wire formats."""

import itertools
import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ostler.backends.engine.history import History
from ostler.core.events import (
    Compacted,
    Delivered,
    Envelope,
    MessageDone,
    Pruned,
    Reminded,
    Reverted,
    Steered,
    ToolCalled,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from ostler.core.message import CallPart, Message, ThoughtPart
from ostler.core.prompt import ImageContent, Prompt, TextContent
from ostler.core.tools import ToolCall, ToolResult
from ostler.journal.active_records import ActiveRecords
from ostler.journal.records import ListRecords
from ostler.models.anthropic_request import messages_body
from ostler.models.model_types import ModelRequest, SystemMessage
from ostler.models.openai_request import ServerQuirks, chat_body
from ostler.session.repair import close_unfinished
from ostler.session.state import state_from_records

words = st.sampled_from(["hi", "", " ", "go on\n", "继续", "x" * 300])


class Log:
    """Records as a session would write them."""

    def __init__(self):
        self.records = []
        self.ids = itertools.count(1)

    def add(self, event):
        self.records.append(Envelope(len(self.records) * 2 + 1, 0.0, event))

    def new(self, kind):
        return f"{kind}-{next(self.ids)}"


@st.composite
def logs(draw):
    """Turns with steps, calls, results, steering, commands by hand, nudges, prunings, summaries and reverts."""
    log = Log()
    for _ in range(draw(st.integers(1, 4))):
        _turn(draw, log)
        if draw(st.integers(0, 9)) == 0:
            log.add(Reverted(draw(st.integers(0, len(log.records) * 2))))
        if draw(st.integers(0, 4)) == 0:
            call = ToolCall(log.new("hand"), "bash", {"command": "ls"}, "person")
            log.add(ToolCalled(call))
            log.add(ToolFinished(ToolResult(call.id, "ok", draw(words))))
    return log.records


def _turn(draw, log):
    turn_id = log.new("turn")
    log.add(TurnStarted(turn_id, Prompt(log.new("prompt"), (TextContent(draw(words)),))))
    for _ in range(draw(st.integers(0, 4))):
        _hidden(draw, log)
        _step(draw, log)
    log.add(TurnEnded(turn_id, "done"))


def _hidden(draw, log):
    match draw(st.integers(0, 8)):
        case 0:
            log.add(Reminded("keep a plan"))
        case 1:
            log.add(Pruned(draw(st.integers(0, len(log.records) * 2 + 2)), draw(st.sampled_from([0, 120]))))
        case 2:
            log.add(Compacted("what was", draw(st.integers(0, len(log.records) * 2 + 2))))
        case 4:
            log.add(Compacted("", 0))
        case 3:
            prompt = Prompt(log.new("prompt"), (TextContent(draw(words)),))
            log.add(Steered(prompt))
            log.add(Delivered(prompt.id))


def _step(draw, log):
    calls = [ToolCall(log.new("call"), "read", {"path": "a"}) for _ in range(draw(st.integers(0, 3)))]
    text, cut = draw(words), draw(st.integers(0, 6)) == 0
    parts = [ThoughtPart("hm", draw(st.sampled_from(["", "seal"]))), *([TextContent(text)] if text else [])]
    calls = [] if cut else calls
    log.add(MessageDone(Message(log.new("m"), (*parts, *map(CallPart, calls)), "m", cut)))
    while calls:
        over = draw(st.integers(0, 2)) > 0
        left = _some_results(draw, log, calls, all_of=over)
        if over:
            return
        more = [ToolCall(log.new("call"), "read", {"path": "b"}) for _ in range(draw(st.integers(0, 2)))]
        parts = (TextContent(draw(words.filter(bool))), *map(CallPart, more))
        log.add(MessageDone(Message(log.new("m"), parts, "m", not more, continues=True)))
        _some_results(draw, log, left, all_of=True)
        calls = more


def _some_results(draw, log, calls, *, all_of=False):
    """In any order; those calls that are left."""
    calls = draw(st.permutations(calls))
    some = len(calls) if all_of else draw(st.integers(0, len(calls)))
    for call in calls[:some]:
        log.add(ToolCalled(call))
        log.add(ToolStarted(call.id, call.tool))
        if draw(st.booleans()):
            log.add(Reminded("nudge"))
        images = (ImageContent("image/png", "AA=="),) if draw(st.integers(0, 5)) == 0 else ()
        log.add(ToolFinished(ToolResult(call.id, "ok", draw(words), images=images)))
    return calls[some:]


def resumed(records):
    """A past as the next process finds it: repaired by events."""
    past = ListRecords(records)
    counting = ActiveRecords(past)

    def emit(event):
        past.append(Envelope((past.envelopes[-1].seq if past.envelopes else 0) + 1, 0.0, event))

    close_unfinished(state_from_records(past), emit)
    emit(TurnStarted("next", Prompt("next", (TextContent("and now?"),))))
    counting.refresh()
    return counting


def check_openai(body):
    """Roles as strict servers want them: results right after their calls, all of them, once, and nothing else."""
    messages = json.loads(body)["messages"]
    assert messages[0]["role"] == "system"
    waiting = []
    for message in messages[1:]:
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
            assert isinstance(message["content"], str)
            continue
        assert waiting == []
        assert message["role"] in ("user", "assistant", "system")
        waiting = [call["id"] for call in message.get("tool_calls", ())]
        assert waiting or message["content"] is not None
        assert all(isinstance(json.loads(c["function"]["arguments"]), dict) for c in message.get("tool_calls", ()))
    assert waiting == []
    assert messages[-1]["role"] != "assistant"


def check_anthropic(body):
    """Turns that alternate, begin and end with the user's, and answer every call first thing."""
    messages = json.loads(body)["messages"]
    assert [m["role"] for m in messages] == ["user", "assistant"] * (len(messages) // 2) + ["user"]
    waiting = set()
    for message in messages:
        blocks = message["content"]
        assert blocks
        assert all(block["text"].strip() for block in blocks if block["type"] == "text")
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        assert sorted(results) == sorted(waiting)
        assert all(block["type"] == "tool_result" for block in blocks[: len(results)])
        waiting = {block["id"] for block in blocks if block["type"] == "tool_use"}
    assert waiting == set()


def check(records):
    said = History().follow(records).messages
    request = ModelRequest("Be good.", said)
    check_openai(chat_body("m", request, ServerQuirks(), {}))
    check_anthropic(messages_body("m", request, 1000, {}))
    return said


def every_cut(records, cut):
    records = records[:cut]
    counting = resumed(records)
    assert check(counting)
    followed = History()
    step_by_step = ListRecords()
    for envelope in counting:
        step_by_step.append(envelope)
        followed.follow(step_by_step)
    assert followed.messages == History().follow(counting).messages


@pytest.mark.req("EN-2", "SE-1")
@settings(max_examples=200, deadline=None)
@given(logs(), st.integers(0, 120))
def test_a_session_cut_off_anywhere_goes_on(records, cut):
    every_cut(records, cut)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.req("EN-2", "SE-1")
@settings(max_examples=10_000, deadline=None)
@given(logs(), st.integers(0, 120))
def test_ten_thousand_cuts(records, cut):
    every_cut(records, cut)


@pytest.mark.req("EN-9")
def test_a_revert_is_followed():
    past = ListRecords(
        Envelope(n, 0.0, TurnStarted(f"t{n}", Prompt(f"p{n}", (TextContent(str(n)),)))) for n in range(1, 6)
    )
    counting, history = ActiveRecords(past), History()
    assert len(history.follow(counting).messages) == 5
    past.append(Envelope(6, 0.0, Reverted(2)))
    counting.refresh()
    assert len(history.follow(counting).messages) == 2
    past.append(Envelope(7, 0.0, Reverted(5)))
    counting.refresh()
    assert len(history.follow(counting).messages) == 5


def long_log(count):
    log = Log()
    for n in range(count // 5):
        log.add(TurnStarted(f"t{n}", Prompt(f"p{n}", (TextContent("please go on with the work " * 5),))))
        for _ in range(2):
            call = ToolCall(log.new("call"), "read", {"path": f"src/file{n}.py"}, raw='{"path": "src/file.py"}')
            log.add(MessageDone(Message(log.new("m"), (TextContent("I look."), CallPart(call)))))
            log.add(ToolCalled(call))
            log.add(ToolFinished(ToolResult(call.id, "ok", "line of code\n" * 100)))
        log.add(TurnEnded(f"t{n}", "done"))
    return ListRecords(log.records)


def spent(work):
    """The processor's time, the best of some tries."""
    times = []
    for _ in range(5):
        begun = time.process_time()
        work()
        times.append(time.process_time() - begun)
    return min(times)


@pytest.mark.slow
@pytest.mark.req("EN-2")
def test_five_thousand_messages_take_no_time():
    """All anew, and one more record; on a machine that is busy or slow, as much longer as anything else takes there."""
    past = long_log(5000)
    slowness = max(1.0, spent(lambda: sum(n for n in range(1_000_000))) / 0.035)
    history = History()
    assert len(history.follow(past).messages) >= 5000
    assert spent(lambda: History().follow(past).messages) <= 0.05 * slowness

    def one_more():
        past.append(Envelope(past.envelopes[-1].seq + 1, 0.0, Reminded("once more")))
        assert history.follow(past).messages[-1] == SystemMessage("once more")

    assert spent(one_more) <= 0.005 * slowness
