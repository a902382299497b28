"""Words that wait: sent into a turn, before one, as one ends, or after it; in order, and kept over a crash."""

import asyncio

import pytest

from ostler.backends.engine.history import history
from ostler.backends.scripted import ScriptedBackend
from ostler.journal.memory import MemoryJournal
from ostler.session.session import Session
from ostler.session.state import state_of
from ostler.testing.stagehand import ALLOW_ALL, open_session, play
from ostler.vocabulary.events import Queued, Steered, ToolStarted
from ostler.vocabulary.prompt import Prompt, Text
from ostler.vocabulary.sessions import Queue, Steer
from ostler.workspace.ground import Workspace

pytestmark = pytest.mark.req("EN-16")


async def silent(stage, said): ...


def words(session):
    return [said.blocks[0].text for said in history(session.past())]


async def test_words_sent_before_a_turn_come_before_its_prompt(tmp_path):
    session = await open_session(ScriptedBackend([silent, silent]), (), Workspace(str(tmp_path)))
    for number in (1, 2):
        assert await session.apply(Steer(Prompt(f"early-{number}", (Text(f"early {number}"),))))
    await play(session, "go")
    await play(session, "on")
    assert words(session) == ["early 1", "early 2", "go", "on"]
    await session.aclose()


async def test_words_for_a_turn_that_is_about_to_end_are_not_taken(tmp_path):
    ending, go_on = asyncio.Event(), asyncio.Event()

    class SlowUndo:
        async def begin(self, turn_id):
            return ()

        def living(self, turn_id): ...

        def resting(self, turn_id): ...

        async def finish(self, turn_id):
            ending.set()
            await go_on.wait()

    async def changes(stage, said):
        await stage.intend(ToolStarted("c", "bash"))

    tools, journal = _NoTools(), MemoryJournal("s")
    session = Session(
        backend=ScriptedBackend([changes]),
        tools=tools,
        journal=journal,
        policy=ALLOW_ALL,
        cwd=str(tmp_path),
        undo=SlowUndo(),
    )
    await session.open(version="0", backend="scripted", options={})
    turn = session.start(Prompt("p", (Text("go"),)))
    await ending.wait()
    assert not await session.apply(Steer(Prompt("late", (Text("late"),))))
    go_on.set()
    await turn.wait()
    assert not [event for event in session.past() if isinstance(event, Steered)]
    await session.aclose()


async def test_what_waits_is_in_the_journal_until_it_waits_no_more(tmp_path):
    journal = MemoryJournal("s")
    session = await open_session(ScriptedBackend([silent]), (), Workspace(str(tmp_path)), journal=journal)
    assert await session.apply(Queue(("then that", "!make")))
    await play(session, "go")
    assert session.state.queued == ("then that", "!make") == state_of(journal.past()).queued
    await session.apply(Queue())
    assert state_of(journal.past()).queued == ()
    assert [event.texts for event in session.past() if isinstance(event, Queued)][-1] == ()
    await session.aclose()


class _NoTools:
    async def open(self, stage): ...

    def specs(self):
        return ()

    async def aclose(self): ...
