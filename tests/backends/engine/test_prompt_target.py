"""A prompt that only says who works from now on: the choice holds, a person is told, and no model is asked."""

import pytest
from engine_play import Model, Said, script

from ostler.backends.engine.role import AgentRole
from ostler.core.errors import UsageError
from ostler.core.events import Notice, OptionChanged, TurnEnded
from ostler.core.prompt import Prompt, PromptTarget, TextContent
from ostler.core.sessions import SetOption
from ostler.models.model_types import UserMessage

pytestmark = pytest.mark.req("EN-3")


def said(words, agent=""):
    return Prompt(f"p-{words}", (TextContent(words),), target=PromptTarget(agent, for_session=True) if agent else None)


async def until_ended(reading):
    async for envelope in reading:
        yield envelope
        if isinstance(envelope.event, TurnEnded):
            return


async def test_the_agent_alone_is_chosen_and_no_model_hears_of_it(harness):
    model = Model(script(Said("planned")))
    await harness.open(model, roles=lambda name: AgentRole(name or "build"))
    reading = harness.session.subscribe(harness.session.records()[-1].seq)
    ended = await harness.session.start(said("@agent:plan", "plan")).wait()
    assert (ended.reason, model.requests) == ("done", [])
    told = [envelope.event.text async for envelope in until_ended(reading) if isinstance(envelope.event, Notice)]
    assert told == ["the agent plan works from now on, until another is chosen"]
    await harness.turn("how?")
    assert [one.blocks[0].text for one in model.requests[0].history if isinstance(one, UserMessage)] == ["how?"]
    assert (harness.engine.selection["agent"], harness.session.state.options["agent"]) == ("plan", "plan")


@pytest.mark.parametrize("words", ["@agent:poet", "@agent:poet hello"])
async def test_an_agent_whose_model_is_not_to_be_had_is_not_half_chosen(harness, words):
    taken = []

    def take(name):
        taken.append(name or "build")
        return AgentRole(taken[-1], model="gone" if name == "poet" else "")

    await harness.open(Model(script(Said("planned"))), roles=take)
    await harness.session.apply(SetOption("agent", "plan"))
    harness.engine._make_model = without("gone", harness.engine._make_model)
    ended = await harness.session.start(said(words, "poet")).wait()
    assert (ended.reason, str(ended.fault)) == ("failed", "no model 'gone'")
    assert (taken[-1], harness.engine.selection["agent"], harness.session.state.options["agent"]) == ("plan",) * 3
    with pytest.raises(UsageError):
        await harness.session.apply(SetOption("model", "gone"))
    assert harness.engine.selection["model"] == ""


def without(name, make):
    def made(wanted):
        if wanted == name:
            raise UsageError(f"no model {name!r}")
        return make(wanted)

    return made


async def test_words_beside_it_are_said(harness):
    model = Model(script(Said("planned")))
    await harness.open(model, roles=lambda name: AgentRole(name or "build"))
    await harness.session.start(said("@agent:plan how?", "plan")).wait()
    assert len(model.requests) == 1
    assert OptionChanged("agent", "plan") in harness.past(OptionChanged)
