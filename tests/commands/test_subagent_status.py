"""What subagents do is told while they do it: state, last call, tokens, cost."""

import pytest

from ostler.commands.usage import UsageTracker
from ostler.core.events import ChildEnded, ChildProgress, ChildStarted, TurnEnded
from ostler.frontends.repl.status_line import StatusLine
from ostler.rendering.style import Styler
from ostler.rendering.transcript_renderer import TranscriptRenderer

pytestmark = pytest.mark.req("EN-4", "CL-5")


@pytest.fixture
def meter():
    meter = UsageTracker()
    meter.on_event(ChildStarted("a", "call-1", "explore", "look at\x1b[2J things"))
    meter.on_event(ChildStarted("b", "call-2", "general", ""))
    return meter


def test_each_child_has_a_line_and_the_busiest_is_last(meter):
    assert meter.subagents.lines() == ["explore look at things · begins", "general · begins"]
    meter.on_event(ChildProgress("a", "tool_running", "bash", 1520, 0.0125))
    meter.on_event(ChildProgress("nobody", "planning"))
    assert meter.subagents.lines() == [
        "general · begins",
        "explore look at things · tool running (bash) · 1520 tokens · $0.0125",
    ]


def test_who_is_done_is_not_told_of(meter):
    meter.on_event(ChildEnded("a", "done"))
    assert meter.subagents.lines() == ["general · begins"]
    meter.on_event(TurnEnded("t", "cancelled"))
    assert meter.subagents.lines() == []


def test_the_line_above_the_prompt_tells_of_them(meter):
    status = StatusLine(None, meter)
    assert (
        status.activity(TranscriptRenderer(Styler(enabled=False)))
        == "explore look at things · begins | general · begins"
    )
