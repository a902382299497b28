"""The thinking level as a session option."""

import pytest
from engine_harness import Model, Reply, script

from ostler.core.errors import UsageError
from ostler.core.events import OptionChanged
from ostler.core.sessions import SetOption


@pytest.mark.req("MD-7")
async def test_thinking_level_can_be_changed(harness):
    model = Model(script(Reply("a")))
    await harness.open(model)
    [option] = [option for option in harness.session.info.options if option.id == "thinking"]
    assert [choice.value for choice in option.choices] == ["off", "low", "medium", "high"]
    await harness.turn("one")
    assert await harness.session.apply(SetOption("thinking", "high"))
    await harness.turn("two")
    assert await harness.session.apply(SetOption("thinking", ""))
    await harness.turn("three")
    assert [request.thinking for request in model.requests] == [None, "high", None]
    assert harness.events_of(OptionChanged) == [OptionChanged("thinking", "high"), OptionChanged("thinking", "")]


async def test_unknown_level_is_refused(harness):
    await harness.open(Model(script(Reply("a"))))
    with pytest.raises(UsageError, match="off, low, medium, high"):
        await harness.session.apply(SetOption("thinking", "very"))
