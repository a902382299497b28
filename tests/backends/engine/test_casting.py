"""A prompt that only says who works from now on: the choice holds, a person is told, and no model is asked."""

import pytest
from engine_play import Model, Said, script

from ostler.backends.engine.role import Role
from ostler.models.words import UserSaid
from ostler.vocabulary.errors import UsageError
from ostler.vocabulary.events import Notice, OptionChanged, TurnEnded
from ostler.vocabulary.prompt import Cast, Prompt, Text
from ostler.vocabulary.sessions import SetOption

pytestmark = pytest.mark.req("EN-3")


def said(words, agent=""):
    return Prompt(f"p-{words}", (Text(words),), cast=Cast(agent, lasting=True) if agent else None)


async def until_ended(reading):
    async for envelope in reading:
        yield envelope
        if isinstance(envelope.event, TurnEnded):
            return


async def test_the_agent_alone_is_chosen_and_no_model_hears_of_it(stage):
    model = Model(script(Said("planned")))
    await stage.open(model, roles=lambda name: Role(name or "build"))
    reading = stage.session.subscribe(stage.session.records()[-1].seq)
    ended = await stage.session.start(said("@agent:plan", "plan")).wait()
    assert (ended.reason, model.requests) == ("done", [])
    told = [envelope.event.text async for envelope in until_ended(reading) if isinstance(envelope.event, Notice)]
    assert told == ["the agent plan works from now on, until another is chosen"]
    await stage.turn("how?")
    assert [one.blocks[0].text for one in model.requests[0].history if isinstance(one, UserSaid)] == ["how?"]
    assert (stage.engine.chosen["agent"], stage.session.state.options["agent"]) == ("plan", "plan")


@pytest.mark.parametrize("words", ["@agent:poet", "@agent:poet hello"])
async def test_an_agent_whose_model_is_not_to_be_had_is_not_half_chosen(stage, words):
    taken = []

    def take(name):
        taken.append(name or "build")
        return Role(taken[-1], model="gone" if name == "poet" else "")

    await stage.open(Model(script(Said("planned"))), roles=take)
    await stage.session.apply(SetOption("agent", "plan"))
    stage.engine._make_model = without("gone", stage.engine._make_model)
    ended = await stage.session.start(said(words, "poet")).wait()
    assert (ended.reason, str(ended.fault)) == ("failed", "no model 'gone'")
    assert (taken[-1], stage.engine.chosen["agent"], stage.session.state.options["agent"]) == ("plan",) * 3
    with pytest.raises(UsageError):
        await stage.session.apply(SetOption("model", "gone"))
    assert stage.engine.chosen["model"] == ""


def without(name, make):
    def made(wanted):
        if wanted == name:
            raise UsageError(f"no model {name!r}")
        return make(wanted)

    return made


async def test_words_beside_it_are_said(stage):
    model = Model(script(Said("planned")))
    await stage.open(model, roles=lambda name: Role(name or "build"))
    await stage.session.start(said("@agent:plan how?", "plan")).wait()
    assert len(model.requests) == 1
    assert OptionChanged("agent", "plan") in stage.past(OptionChanged)
