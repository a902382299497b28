"""How much the model shall reason, as a session's option."""

import pytest
from engine_play import Model, Said, script

from ostler.vocabulary.errors import UsageError
from ostler.vocabulary.events import OptionChanged
from ostler.vocabulary.sessions import SetOption


@pytest.mark.req("MD-7")
async def test_a_person_chooses_it_at_run_time(stage):
    model = Model(script(Said("a")))
    await stage.open(model)
    [option] = [option for option in stage.session.info.options if option.id == "thinking"]
    assert [choice.value for choice in option.choices] == ["off", "low", "medium", "high"]
    await stage.turn("one")
    assert await stage.session.apply(SetOption("thinking", "high"))
    await stage.turn("two")
    assert await stage.session.apply(SetOption("thinking", ""))
    await stage.turn("three")
    assert [request.thinking for request in model.requests] == [None, "high", None]
    assert stage.past(OptionChanged) == [OptionChanged("thinking", "high"), OptionChanged("thinking", "")]


async def test_what_nobody_knows_is_refused(stage):
    await stage.open(Model(script(Said("a"))))
    with pytest.raises(UsageError, match="off, low, medium, high"):
        await stage.session.apply(SetOption("thinking", "very"))
