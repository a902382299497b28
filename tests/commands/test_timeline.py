"""What can be gone back to, and forth again: not a prompt that was refused, which was never said."""

import pytest

from ostler.commands.timeline import Timeline
from ostler.vocabulary.events import Envelope, Reverted, TurnEnded, TurnStarted
from ostler.vocabulary.prompt import Prompt, Text


def started(words):
    return TurnStarted(f"turn-{words}", Prompt(f"p-{words}", (Text(words),)))


def heard(*events):
    timeline = Timeline()
    for seq, event in enumerate(events, 1):
        timeline.hear(Envelope(seq, 0.0, event))
    return [one.text for one in timeline.said], [[one.text for one in gone.said] for gone in timeline.gone]


@pytest.mark.req("EN-15", "EN-13")
def test_a_prompt_that_was_refused_cannot_be_done_again():
    said = (started("one"), TurnEnded("turn-one", "done"))
    assert heard(*said, started("refused"), Reverted(2), TurnEnded("turn-refused", "failed")) == (["one"], [])


def test_a_prompt_that_a_person_took_back_can():
    assert heard(started("one"), TurnEnded("turn-one", "done"), Reverted(0)) == ([], [["one"]])
