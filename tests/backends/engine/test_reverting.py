"""The engine forgets by itself what was taken back: its history is what counts of the journal."""

import pytest
from engine_play import Model, Said, script

from ostler.vocabulary.events import Notice
from ostler.vocabulary.sessions import Revert

pytestmark = pytest.mark.req("EN-13")


async def test_nothing_is_left_for_a_person_to_be_warned_of(stage):
    model = Model(script(Said("hello")))
    await stage.open(model)
    at = stage.session.records()[-1].seq
    await stage.turn("one")
    assert await stage.session.apply(Revert(at))
    assert stage.past(Notice) == []
    await stage.turn("two")
    assert "one" not in str(model.requests[-1].history)
