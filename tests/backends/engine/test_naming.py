"""Titles and summaries: asked for beside the work, never waited for, and never over a person's own."""

import asyncio

import pytest
from engine_play import Model, Said

from ostler.backends.engine.helpers import Helpers, built_in
from ostler.vocabulary.events import Renamed, UsageReported
from ostler.vocabulary.sessions import Rename

TITLE, SUMMARY = built_in("title").prompt, built_in("summary").prompt
NAMES = Helpers(names=True, model="small")


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


async def opened(stage, model, helpers=NAMES):
    await stage.open(model, helpers=helpers)

    def make(name):
        model.made.append(name)
        return model

    stage.engine._naming._make_model = make
    return stage


async def renamed(stage, count=1):
    """Wait for so many titles."""
    async for envelope in stage.session.subscribe(0):
        count -= isinstance(envelope.event, Renamed)
        if not count:
            break
    return stage.past(Renamed)


@pytest.mark.req("SE-2")
async def test_a_session_is_named_beside_its_first_turn_by_the_small_model(stage):
    model = Names('"A fine title."\n')
    await opened(stage, model)
    await stage.turn("please do something")
    assert await renamed(stage) == [Renamed("A fine title")]
    assert stage.session.state.title == "A fine title"
    assert model.made == ["small"]
    assert "please do something" in model.asked[0].history[0].blocks[0].text
    assert [(u.tokens_in, u.context_used) for u in stage.past(UsageReported) if u.tokens_in == 20] == [(20, 0)]
    await stage.turn("and more")
    assert len(model.asked) == 1


@pytest.mark.req("SE-2")
async def test_no_turn_and_no_end_waits_for_a_title(stage):
    model = Names()
    model.held = asyncio.Event()
    await opened(stage, model)
    assert (await stage.turn("go")).reason == "done"
    await stage.session.aclose()
    assert stage.past(Renamed) == []


@pytest.mark.req("SE-2")
async def test_what_a_person_called_it_stays(stage):
    model = Names()
    model.held = asyncio.Event()
    await opened(stage, model)
    await stage.turn("go")
    await stage.session.apply(Rename("mine"))
    model.held.set()
    for n in range(2):
        await stage.turn(f"more {n}")
    assert await renamed(stage, 2) == [Renamed("mine"), Renamed("mine", "They wanted it.\nIt is done.")]


@pytest.mark.req("SE-2")
@pytest.mark.parametrize("helpers", [Helpers(), Helpers(names=True)])
async def test_failures_disturb_nobody_and_without_the_wish_nothing_is_asked(stage, helpers):
    model = Names(fails="gone")
    await opened(stage, model, helpers)
    assert (await stage.turn("go")).reason == "done"
    await stage.session.aclose()
    assert stage.past(Renamed) == [] and len(model.asked) <= helpers.names
