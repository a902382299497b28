"""Status lines of running subagents: state, last call, tokens, cost."""

import pytest

from ostler.core.events import ChildEnded, ChildProgress, ChildStarted, TurnEnded
from ostler.frontends.repl.status_line import StatusLine
from ostler.interaction.usage import UsageTracker
from ostler.rendering.style import Styler
from ostler.rendering.transcript_renderer import TranscriptRenderer

pytestmark = pytest.mark.req("EN-4", "CL-5")


@pytest.fixture
def tracker():
    tracker = UsageTracker()
    tracker.on_event(ChildStarted("a", "call-1", "explore", "look at\x1b[2J things"))
    tracker.on_event(ChildStarted("b", "call-2", "general", ""))
    return tracker


def test_each_subagent_has_a_line_and_the_last_active_one_is_last(tracker):
    assert tracker.subagents.lines() == ["explore look at things · starting", "general · starting"]
    tracker.on_event(ChildProgress("a", "tool_running", "bash", 1520, 0.0125))
    tracker.on_event(ChildProgress("unknown", "planning"))
    assert tracker.subagents.lines() == [
        "general · starting",
        "explore look at things · tool running (bash) · 1520 tokens · $0.0125",
    ]


def test_finished_subagents_are_not_listed(tracker):
    tracker.on_event(ChildEnded("a", "done"))
    assert tracker.subagents.lines() == ["general · starting"]
    tracker.on_event(TurnEnded("t", "cancelled"))
    assert tracker.subagents.lines() == []


def test_status_line_lists_subagents(tracker):
    status = StatusLine(None, tracker)
    assert (
        status.activity(TranscriptRenderer(Styler(enabled=False)))
        == "explore look at things · starting | general · starting"
    )
