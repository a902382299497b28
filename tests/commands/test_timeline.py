"""What can be gone back to, and forth again: not a prompt that was refused, which was never said."""

import pytest

from ostler.commands.timeline import Timeline
from ostler.core.events import Envelope, Reverted, TurnEnded, TurnStarted
from ostler.core.prompt import Prompt, TextContent


def started(words):
    return TurnStarted(f"turn-{words}", Prompt(f"p-{words}", (TextContent(words),)))


def heard(*events):
    timeline = Timeline()
    for seq, event in enumerate(events, 1):
        timeline.on_event(Envelope(seq, 0.0, event))
    return [one.text for one in timeline.entries], [[one.text for one in gone.entries] for gone in timeline.reverted]


@pytest.mark.req("EN-15", "EN-13")
def test_a_prompt_that_was_refused_cannot_be_done_again():
    said = (started("one"), TurnEnded("turn-one", "done"))
    assert heard(*said, started("refused"), Reverted(2), TurnEnded("turn-refused", "failed")) == (["one"], [])


def test_a_prompt_that_a_person_took_back_can():
    assert heard(started("one"), TurnEnded("turn-one", "done"), Reverted(0)) == ([], [["one"]])
