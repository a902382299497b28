"""The engine needs no action for a revert: its history is folded from the active records."""

import pytest
from engine_harness import Model, Reply, script

from ostler.core.events import Notice
from ostler.core.sessions import Revert

pytestmark = pytest.mark.req("EN-13")


async def test_revert_needs_no_warning(harness):
    model = Model(script(Reply("hello")))
    await harness.open(model)
    seq = harness.session.records()[-1].seq
    await harness.turn("one")
    assert await harness.session.apply(Revert(seq))
    assert harness.events_of(Notice) == []
    await harness.turn("two")
    assert "one" not in str(model.requests[-1].history)
