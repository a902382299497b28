"""Prompts that select an agent for the session: persisted, reported to the user, and not sent to a model."""

import pytest
from engine_harness import Model, Reply, script

from ostler.core.errors import UsageError
from ostler.core.events import Notice, OptionChanged, TurnEnded
from ostler.core.prompt import Prompt, PromptTarget, TextContent
from ostler.core.sessions import SetOption
from ostler.knowledge.agent_definition import AgentRole
from ostler.models.model_types import UserMessage

pytestmark = pytest.mark.req("EN-3")


def prompt_for(text, agent=""):
    target = PromptTarget(agent, for_session=True, selects_only=text == f"@agent:{agent}")
    return Prompt(f"p-{text}", (TextContent(text),), target=target)


async def until_ended(subscription):
    async for envelope in subscription:
        yield envelope
        if isinstance(envelope.event, TurnEnded):
            return


async def test_selection_alone_is_not_sent_to_a_model(harness):
    model = Model(script(Reply("planned")))
    await harness.open(model, roles=lambda name: AgentRole(name or "build"))
    subscription = harness.session.subscribe(harness.session.records()[-1].seq)
    ended = await harness.session.start(prompt_for("@agent:plan", "plan")).wait()
    assert (ended.reason, model.requests) == ("done", [])
    notices = [
        envelope.event.text async for envelope in until_ended(subscription) if isinstance(envelope.event, Notice)
    ]
    assert notices == ["switched to agent plan for this session"]
    await harness.turn("how?")
    assert [message.blocks[0].text for message in model.requests[0].history if isinstance(message, UserMessage)] == [
        "how?"
    ]
    assert (harness.session.info.option("agent"), harness.session.state.options["agent"]) == ("plan", "plan")


@pytest.mark.parametrize("text", ["@agent:poet", "@agent:poet hello"])
async def test_agent_without_a_model_is_not_selected(harness, text):
    def role(name):
        return AgentRole(name or "build", model="gone" if name == "poet" else "")

    await harness.open(Model(script(Reply("planned"))), roles=role)
    await harness.session.apply(SetOption("agent", "plan"))
    harness.engine._make_model = make_model_except("gone", harness.engine._make_model)
    ended = await harness.session.start(prompt_for(text, "poet")).wait()
    assert (ended.reason, str(ended.fault)) == ("failed", "no model 'gone'")
    assert (harness.session.info.option("agent"), harness.session.state.options["agent"]) == ("plan", "plan")
    with pytest.raises(UsageError):
        await harness.session.apply(SetOption("model", "gone"))
    assert "model" not in harness.session.state.options


def make_model_except(name, make):
    def make_or_fail(requested):
        if requested == name:
            raise UsageError(f"no model {name!r}")
        return make(requested)

    return make_or_fail


async def test_text_besides_the_selection_is_sent(harness):
    model = Model(script(Reply("planned")))
    await harness.open(model, roles=lambda name: AgentRole(name or "build"))
    await harness.session.start(prompt_for("@agent:plan how?", "plan")).wait()
    assert len(model.requests) == 1
    assert OptionChanged("agent", "plan") in harness.events_of(OptionChanged)
