"""Titles and summaries: asked for beside the work, never waited for, and never over a person's own."""

import asyncio

import pytest
from engine_play import Model, Said

from ostler.backends.engine.internal_agents import InternalAgents, built_in_role
from ostler.core.events import Renamed, UsageReported
from ostler.core.sessions import Rename

TITLE, SUMMARY = built_in_role("title").prompt, built_in_role("summary").prompt
NAMES = InternalAgents(makes_titles=True, model="small")


class Names(Model):
    """Says what it is asked as a hidden agent, and `ok` as the session's."""

    def __init__(self, title="A fine title", fails=""):
        super().__init__(self._say)
        self.asked, self.held, self.made = [], None, []
        self._title, self._fails = title, fails

    def _say(self, request):
        if request.system not in (TITLE, SUMMARY):
            return Said("ok").counted(100, 5)
        self.asked.append(request)
        said = Said(self._title if request.system == TITLE else "They wanted it.\nIt is done.", fails=self._fails)
        said.pause = self.held
        return said.counted(20, 3)


async def opened(harness, model, helpers=NAMES):
    await harness.open(model, internal_agents=helpers)

    def make(name):
        model.made.append(name)
        return model

    harness.engine._titles._make_model = make
    return harness


async def renamed(harness, count=1):
    """Wait for so many titles."""
    async for envelope in harness.session.subscribe(0):
        count -= isinstance(envelope.event, Renamed)
        if not count:
            break
    return harness.past(Renamed)


@pytest.mark.req("SE-2")
async def test_a_session_is_named_beside_its_first_turn_by_the_small_model(harness):
    model = Names('"A fine title."\n')
    await opened(harness, model)
    await harness.turn("please do something")
    assert await renamed(harness) == [Renamed("A fine title")]
    assert harness.session.state.title == "A fine title"
    assert model.made == ["small"]
    assert "please do something" in model.asked[0].history[0].blocks[0].text
    assert [(u.tokens_in, u.context_used) for u in harness.past(UsageReported) if u.tokens_in == 20] == [(20, 0)]
    await harness.turn("and more")
    assert len(model.asked) == 1


@pytest.mark.req("SE-2")
async def test_no_turn_and_no_end_waits_for_a_title(harness):
    model = Names()
    model.held = asyncio.Event()
    await opened(harness, model)
    assert (await harness.turn("go")).reason == "done"
    await harness.session.aclose()
    assert harness.past(Renamed) == []


@pytest.mark.req("SE-2")
async def test_what_a_person_called_it_stays(harness):
    model = Names()
    model.held = asyncio.Event()
    await opened(harness, model)
    await harness.turn("go")
    await harness.session.apply(Rename("mine"))
    model.held.set()
    for n in range(2):
        await harness.turn(f"more {n}")
    assert await renamed(harness, 2) == [Renamed("mine"), Renamed("mine", "They wanted it.\nIt is done.")]


@pytest.mark.req("SE-2")
@pytest.mark.parametrize("helpers", [InternalAgents(), InternalAgents(makes_titles=True)])
async def test_failures_disturb_nobody_and_without_the_wish_nothing_is_asked(harness, helpers):
    model = Names(fails="gone")
    await opened(harness, model, helpers)
    assert (await harness.turn("go")).reason == "done"
    await harness.session.aclose()
    assert harness.past(Renamed) == [] and len(model.asked) <= helpers.makes_titles
