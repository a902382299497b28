"""Stopping what runs: also a turn that the far side began; and what waits behind it when the person leaves."""

import asyncio
from types import SimpleNamespace

import pytest

from ostler.backends.scripted import ScriptedBackend
from ostler.core.events import TurnEnded, TurnStarted
from ostler.core.sessions import SetQueue
from ostler.frontends.repl.turn_queue import TurnQueue
from ostler.testing.session_fixture import make_prompt, open_test_session
from ostler.workspace.local_workspace import LocalWorkspace


@pytest.mark.parametrize("heard", [False, True])
async def test_a_turn_of_the_far_side_is_cancelled(tmp_path, heard):
    async def far(context, said):
        await asyncio.Event().wait()

    session = await open_test_session(ScriptedBackend([far]), [], LocalWorkspace(str(tmp_path)))
    playing = TurnQueue(session, lambda: None, lambda why, words: None)
    assert not playing.cancel()
    session.remote_turn_started(make_prompt("from afar"))
    turn = session.turn
    if heard:
        playing.on_event(TurnStarted(turn.id, make_prompt("from afar")))
    assert playing.cancel()
    async with asyncio.timeout(60):
        assert (await turn.wait()).reason == "cancelled"
    await session.aclose()


class ClosingSession:
    """A session whose turn ends, cancelled, when it is closed."""

    turn = None
    state = SimpleNamespace(queued=())

    def __init__(self):
        self.kept = []
        self.closing = lambda: None

    def start(self, said):
        return SimpleNamespace(id="turn-1")

    async def apply(self, change):
        self.kept.append(change)
        return True

    async def aclose(self):
        self.closing()


@pytest.mark.req("CL-9")
async def test_what_waits_when_the_person_leaves_stays_kept():
    session, failed = ClosingSession(), []
    playing = TurnQueue(session, lambda: None, lambda *told: failed.append(told))
    playing.enqueue(make_prompt("first"))
    playing.start_next()
    playing.enqueue(make_prompt("second"))

    def closing():
        playing.on_event(TurnEnded("turn-1", "cancelled"))
        playing.drain()

    session.closing = closing
    await playing.aclose()
    await asyncio.sleep(0)
    assert (session.kept, failed) == ([SetQueue(("second",))], [])


@pytest.mark.req("EN-16", "CL-9")
async def test_nothing_is_said_to_wait_before_it_is_kept():
    session, told = ClosingSession(), asyncio.Event()
    playing = TurnQueue(session, told.set, lambda *failed: None)
    playing.enqueue(make_prompt("first"))
    playing.start_next()
    told.clear()
    playing.enqueue(make_prompt("second"))
    assert (playing.queued, session.kept) == (0, [])
    async with asyncio.timeout(60):
        while not playing.queued:
            told.clear()
            await told.wait()
    assert (playing.queued, session.kept) == (1, [SetQueue(("second",))])
