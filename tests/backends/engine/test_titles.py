"""Titles and summaries: generated in the background, never awaited, and never replacing the user's title."""

import asyncio

import pytest
from engine_harness import Model, Reply

from ostler.backends.engine.internal_agents import InternalAgents, built_in_role
from ostler.core.events import Renamed, UsageReported
from ostler.core.sessions import Rename

TITLE, SUMMARY = built_in_role("title").prompt, built_in_role("summary").prompt
TITLE_AGENTS = InternalAgents(makes_titles=True, model="small")


class TitleModel(Model):
    """Answers internal agents with a title or summary, and the session with `ok`."""

    def __init__(self, title="A fine title", fails=""):
        super().__init__(self._make_reply)
        self.internal_requests, self.pause, self.model_names = [], None, []
        self._title, self._fails = title, fails

    def _make_reply(self, request):
        if request.system not in (TITLE, SUMMARY):
            return Reply("ok").counted(100, 5)
        self.internal_requests.append(request)
        reply = Reply(self._title if request.system == TITLE else "They wanted it.\nIt is done.", fails=self._fails)
        reply.pause = self.pause
        return reply.counted(20, 3)


async def open_harness(harness, model, agents=TITLE_AGENTS):
    await harness.open(model, internal_agents=agents)

    def make(name):
        model.model_names.append(name)
        return model

    harness.engine._titles._make_model = make
    return harness


async def wait_for_titles(harness, count=1):
    """Wait for `count` titles and return them."""
    async for envelope in harness.session.subscribe(0):
        count -= isinstance(envelope.event, Renamed)
        if not count:
            break
    return harness.events_of(Renamed)


@pytest.mark.req("SE-2")
async def test_title_is_made_in_the_background_by_the_small_model(harness):
    model = TitleModel('"A fine title."\n')
    await open_harness(harness, model)
    await harness.turn("please do something")
    assert await wait_for_titles(harness) == [Renamed("A fine title")]
    assert harness.session.state.title == "A fine title"
    assert model.model_names == ["small"]
    assert "please do something" in model.internal_requests[0].history[0].blocks[0].text
    assert [(u.tokens_in, u.context_used) for u in harness.events_of(UsageReported) if u.tokens_in == 20] == [(20, 0)]
    await harness.turn("and more")
    assert len(model.internal_requests) == 1


@pytest.mark.req("SE-2")
async def test_turn_and_close_do_not_wait_for_a_title(harness):
    model = TitleModel()
    model.pause = asyncio.Event()
    await open_harness(harness, model)
    assert (await harness.turn("go")).reason == "done"
    await harness.session.aclose()
    assert harness.events_of(Renamed) == []


@pytest.mark.req("SE-2")
async def test_user_title_is_kept(harness):
    model = TitleModel()
    model.pause = asyncio.Event()
    await open_harness(harness, model)
    await harness.turn("go")
    await harness.session.apply(Rename("mine"))
    model.pause.set()
    for n in range(2):
        await harness.turn(f"more {n}")
    assert await wait_for_titles(harness, 2) == [Renamed("mine"), Renamed("mine", "They wanted it.\nIt is done.")]


@pytest.mark.req("SE-2")
@pytest.mark.parametrize("agents", [InternalAgents(), InternalAgents(makes_titles=True)])
async def test_failures_are_ignored_and_titles_are_optional(harness, agents):
    model = TitleModel(fails="gone")
    await open_harness(harness, model, agents)
    assert (await harness.turn("go")).reason == "done"
    await harness.session.aclose()
    assert harness.events_of(Renamed) == [] and len(model.internal_requests) <= agents.makes_titles
