"""The engine forgets by itself what was taken back: its history is what counts of the journal."""

import pytest
from engine_play import Model, Said, script

from ostler.core.events import Notice
from ostler.core.sessions import Revert

pytestmark = pytest.mark.req("EN-13")


async def test_nothing_is_left_for_a_person_to_be_warned_of(harness):
    model = Model(script(Said("hello")))
    await harness.open(model)
    at = harness.session.records()[-1].seq
    await harness.turn("one")
    assert await harness.session.apply(Revert(at))
    assert harness.past(Notice) == []
    await harness.turn("two")
    assert "one" not in str(model.requests[-1].history)
