"""What subagents do is told while they do it: state, last call, tokens, cost."""

import pytest

from ostler.commands.meter import Meter
from ostler.drawing.paint import Paint
from ostler.drawing.scroll import Scroll
from ostler.faces.repl.status import Status
from ostler.vocabulary.events import ChildEnded, ChildProgress, ChildStarted, TurnEnded

pytestmark = pytest.mark.req("EN-4", "CL-5")


@pytest.fixture
def meter():
    meter = Meter()
    meter.hear(ChildStarted("a", "call-1", "explore", "look at\x1b[2J things"))
    meter.hear(ChildStarted("b", "call-2", "general", ""))
    return meter


def test_each_child_has_a_line_and_the_busiest_is_last(meter):
    assert meter.children.lines() == ["explore look at things · begins", "general · begins"]
    meter.hear(ChildProgress("a", "tool_running", "bash", 1520, 0.0125))
    meter.hear(ChildProgress("nobody", "planning"))
    assert meter.children.lines() == [
        "general · begins",
        "explore look at things · tool running (bash) · 1520 tokens · $0.0125",
    ]


def test_who_is_done_is_not_told_of(meter):
    meter.hear(ChildEnded("a", "done"))
    assert meter.children.lines() == ["general · begins"]
    meter.hear(TurnEnded("t", "cancelled"))
    assert meter.children.lines() == []


def test_the_line_above_the_prompt_tells_of_them(meter):
    status = Status(None, meter)
    assert status.passing(Scroll(Paint(on=False))) == "explore look at things · begins | general · begins"
