"""Prompts sent before, during or after a turn: delivered in order and saved across a crash."""

import asyncio

import pytest
from tests.session.no_undo import NoUndo

from ostler.backends.engine.history import fold_history
from ostler.backends.scripted import ScriptedBackend
from ostler.core.events import Queued, Steered, ToolStarted
from ostler.core.prompt import Prompt, TextContent
from ostler.core.sessions import SetQueue, Steer
from ostler.journal.memory_journal import MemoryJournal
from ostler.session.session import LocalSession
from ostler.session.state import state_from_records
from ostler.testing.session_fixture import ALLOW_ALL, open_test_session, run_turn
from ostler.workspace.local_workspace import LocalWorkspace

pytestmark = pytest.mark.req("EN-16")


async def silent(context, prompt): ...


def texts(session):
    return [message.blocks[0].text for message in fold_history(session.events())]


async def test_prompts_sent_before_turn_precede_its_prompt(tmp_path):
    session = await open_test_session(ScriptedBackend([silent, silent]), (), LocalWorkspace(str(tmp_path)))
    for number in (1, 2):
        assert await session.apply(Steer(Prompt(f"early-{number}", (TextContent(f"early {number}"),))))
    await run_turn(session, "go")
    await run_turn(session, "on")
    assert texts(session) == ["early 1", "early 2", "go", "on"]
    await session.aclose()


async def test_prompt_for_ending_turn_is_rejected(tmp_path):
    ending, resume = asyncio.Event(), asyncio.Event()

    class SlowUndo(NoUndo):
        async def finish(self, turn_id):
            ending.set()
            await resume.wait()

    async def start_call(context, prompt):
        await context.record_start(ToolStarted("c", "bash"))

    tools, journal = _NoTools(), MemoryJournal("s")
    session = LocalSession(
        backend=ScriptedBackend([start_call]),
        tools=tools,
        journal=journal,
        policy=ALLOW_ALL,
        cwd=str(tmp_path),
        undo=SlowUndo(),
    )
    await session.open(version="0", backend="scripted", options={})
    turn = session.start(Prompt("p", (TextContent("go"),)))
    await ending.wait()
    assert not await session.apply(Steer(Prompt("late", (TextContent("late"),))))
    resume.set()
    await turn.wait()
    assert not [event for event in session.events() if isinstance(event, Steered)]
    await session.aclose()


@pytest.mark.invariant("M6")
async def test_queued_prompts_are_in_journal_until_removed(tmp_path):
    journal = MemoryJournal("s")
    session = await open_test_session(ScriptedBackend([silent]), (), LocalWorkspace(str(tmp_path)), journal=journal)
    assert await session.apply(SetQueue(("then that", "!make")))
    await run_turn(session, "go")
    assert session.state.queued == ("then that", "!make") == state_from_records(journal.records()).queued
    await session.apply(SetQueue())
    assert state_from_records(journal.records()).queued == ()
    assert [event.texts for event in session.events() if isinstance(event, Queued)][-1] == ()
    await session.aclose()


class _NoTools:
    async def open(self, context): ...

    def specs(self):
        return ()

    async def aclose(self): ...
