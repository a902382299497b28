"""Which prompts can be undone and redone; a prompt that was never sent cannot."""

import pytest

from ostler.core.events import Envelope, Reverted, TurnEnded, TurnStarted
from ostler.core.prompt import Prompt, TextContent
from ostler.interaction.timeline import Timeline


def started(text):
    return TurnStarted(f"turn-{text}", Prompt(f"p-{text}", (TextContent(text),)))


def timeline_texts(*events):
    timeline = Timeline()
    for seq, event in enumerate(events, 1):
        timeline.on_event(Envelope(seq, 0.0, event))
    reverted = [[entry.text for entry in revert.entries] for revert in timeline.reverted]
    return [entry.text for entry in timeline.entries], reverted


@pytest.mark.req("EN-15", "EN-13")
def test_rejected_prompt_cannot_be_redone():
    first = (started("one"), TurnEnded("turn-one", "done"))
    assert timeline_texts(*first, started("rejected"), Reverted(2), TurnEnded("turn-rejected", "failed")) == (
        ["one"],
        [],
    )


def test_prompt_undone_by_the_user_can_be_redone():
    assert timeline_texts(started("one"), TurnEnded("turn-one", "done"), Reverted(0)) == ([], [["one"]])
