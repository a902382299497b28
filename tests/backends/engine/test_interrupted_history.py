"""Wherever a session is interrupted, the next request is valid for both wire formats."""

import itertools
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tiers import examples

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

texts = st.sampled_from(["hi", "", " ", "go on\n", "继续", "x" * 300])


class Log:
    """Records as a session writes them."""

    def __init__(self):
        self.records = []
        self.ids = itertools.count(1)

    def add(self, event):
        self.records.append(Envelope(len(self.records) * 2 + 1, 0.0, event))

    def new(self, kind):
        return f"{kind}-{next(self.ids)}"


@st.composite
def logs(draw):
    """Generate turns with steps, calls, results, steering, manual commands, reminders, compactions and reverts."""
    log = Log()
    for _ in range(draw(st.integers(1, 4))):
        _turn(draw, log)
        if draw(st.integers(0, 9)) == 0:
            log.add(Reverted(draw(st.integers(0, len(log.records) * 2))))
        if draw(st.integers(0, 4)) == 0:
            call = ToolCall(log.new("hand"), "bash", {"command": "ls"}, "person")
            log.add(ToolCalled(call))
            log.add(ToolFinished(ToolResult(call.id, "ok", draw(texts))))
    return log.records


def _turn(draw, log):
    turn_id = log.new("turn")
    log.add(TurnStarted(turn_id, Prompt(log.new("prompt"), (TextContent(draw(texts)),))))
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
            prompt = Prompt(log.new("prompt"), (TextContent(draw(texts)),))
            log.add(Steered(prompt))
            log.add(Delivered(prompt.id))


def _step(draw, log):
    calls = [ToolCall(log.new("call"), "read", {"path": "a"}) for _ in range(draw(st.integers(0, 3)))]
    text, truncated = draw(texts), draw(st.integers(0, 6)) == 0
    parts = [ThoughtPart("hm", draw(st.sampled_from(["", "seal"]))), *([TextContent(text)] if text else [])]
    calls = [] if truncated else calls
    log.add(MessageDone(Message(log.new("m"), (*parts, *map(CallPart, calls)), "m", truncated)))
    while calls:
        finished = draw(st.integers(0, 2)) > 0
        open_calls = _some_results(draw, log, calls, all_calls=finished)
        if finished:
            return
        later_calls = [ToolCall(log.new("call"), "read", {"path": "b"}) for _ in range(draw(st.integers(0, 2)))]
        parts = (TextContent(draw(texts.filter(bool))), *map(CallPart, later_calls))
        log.add(MessageDone(Message(log.new("m"), parts, "m", not later_calls, continues=True)))
        _some_results(draw, log, open_calls, all_calls=True)
        calls = later_calls


def _some_results(draw, log, calls, *, all_calls=False):
    """Add results in any order and return the calls without one."""
    calls = draw(st.permutations(calls))
    count = len(calls) if all_calls else draw(st.integers(0, len(calls)))
    for call in calls[:count]:
        log.add(ToolCalled(call))
        log.add(ToolStarted(call.id, call.tool))
        if draw(st.booleans()):
            log.add(Reminded("nudge"))
        images = (ImageContent("image/png", "AA=="),) if draw(st.integers(0, 5)) == 0 else ()
        log.add(ToolFinished(ToolResult(call.id, "ok", draw(texts), images=images)))
    return calls[count:]


def resume(records):
    """Return the records as the next process sees them, after repair and with a new prompt."""
    stored = ListRecords(records)
    active = ActiveRecords(stored)

    def emit(event):
        stored.append(Envelope((stored.envelopes[-1].seq if stored.envelopes else 0) + 1, 0.0, event))

    close_unfinished(state_from_records(stored), emit)
    emit(TurnStarted("next", Prompt("next", (TextContent("and now?"),))))
    active.refresh()
    return active


def check_openai(body):
    """Check the message order that strict servers require: all results once, directly after their calls."""
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
    """Check that roles alternate, the user is first and last, and results come first in the next message."""
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
    messages = History().follow(records).messages
    request = ModelRequest("Be good.", messages)
    check_openai(chat_body("m", request, ServerQuirks(), {}))
    check_anthropic(messages_body("m", request, 1000, {}))
    return messages


def check_interruption(records, length):
    records = records[:length]
    active = resume(records)
    assert check(active)
    incremental = History()
    step_by_step = ListRecords()
    for envelope in active:
        step_by_step.append(envelope)
        incremental.follow(step_by_step)
    assert incremental.messages == History().follow(active).messages


@pytest.mark.req("EN-2", "SE-1")
@examples(200)
@given(logs(), st.integers(0, 120))
def test_session_interrupted_anywhere_continues(records, length):
    check_interruption(records, length)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.req("EN-2", "SE-1")
@examples(10_000)
@given(logs(), st.integers(0, 120))
def test_ten_thousand_interruptions(records, length):
    check_interruption(records, length)


@pytest.mark.req("EN-9")
def test_history_follows_reverts():
    stored = ListRecords(
        Envelope(n, 0.0, TurnStarted(f"t{n}", Prompt(f"p{n}", (TextContent(str(n)),)))) for n in range(1, 6)
    )
    active, history = ActiveRecords(stored), History()
    assert len(history.follow(active).messages) == 5
    stored.append(Envelope(6, 0.0, Reverted(2)))
    active.refresh()
    assert len(history.follow(active).messages) == 2
    stored.append(Envelope(7, 0.0, Reverted(5)))
    active.refresh()
    assert len(history.follow(active).messages) == 5


def long_log(count):
    log = Log()
    for n in range(count // 5):
        log.add(TurnStarted(f"t{n}", Prompt(f"p{n}", (TextContent("please continue with the work " * 5),))))
        for _ in range(2):
            call = ToolCall(log.new("call"), "read", {"path": f"src/file{n}.py"}, raw='{"path": "src/file.py"}')
            log.add(MessageDone(Message(log.new("m"), (TextContent("I look."), CallPart(call)))))
            log.add(ToolCalled(call))
            log.add(ToolFinished(ToolResult(call.id, "ok", "line of code\n" * 100)))
        log.add(TurnEnded(f"t{n}", "done"))
    return ListRecords(log.records)


def cpu_time(work):
    """Return the best processor time of several runs."""
    times = []
    for _ in range(5):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return min(times)


@pytest.mark.slow
@pytest.mark.req("EN-2")
def test_five_thousand_messages_are_fast():
    """Folding all records, and one more; the limits scale with the speed of the machine."""
    stored = long_log(5000)
    slowness = max(1.0, cpu_time(lambda: sum(n for n in range(1_000_000))) / 0.035)
    history = History()
    assert len(history.follow(stored).messages) >= 5000
    assert cpu_time(lambda: History().follow(stored).messages) <= 0.05 * slowness

    def append_one():
        stored.append(Envelope(stored.envelopes[-1].seq + 1, 0.0, Reminded("once more")))
        assert history.follow(stored).messages[-1] == SystemMessage("once more")

    assert cpu_time(append_one) <= 0.005 * slowness
