"""Stopping what runs: also a turn that the far side began; and what waits behind it when the person leaves."""

import asyncio
from types import SimpleNamespace

import pytest

from ostler.backends.scripted import ScriptedBackend
from ostler.faces.repl.playing import Playing
from ostler.testing.stagehand import open_session, prompt
from ostler.vocabulary.events import TurnEnded, TurnStarted
from ostler.vocabulary.sessions import Queue
from ostler.workspace.ground import Workspace


@pytest.mark.parametrize("heard", [False, True])
async def test_a_turn_of_the_far_side_is_cancelled(tmp_path, heard):
    async def far(stage, said):
        await asyncio.Event().wait()

    session = await open_session(ScriptedBackend([far]), [], Workspace(str(tmp_path)))
    playing = Playing(session, lambda: None, lambda why, words: None)
    assert not playing.cancel()
    session.wake(prompt("from afar"))
    turn = session.turn
    if heard:
        playing.hear(TurnStarted(turn.id, prompt("from afar")))
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
    playing = Playing(session, lambda: None, lambda *told: failed.append(told))
    playing.put(prompt("first"))
    playing.next()
    playing.put(prompt("second"))

    def closing():
        playing.hear(TurnEnded("turn-1", "cancelled"))
        playing.give_back()

    session.closing = closing
    await playing.aclose()
    await asyncio.sleep(0)
    assert (session.kept, failed) == ([Queue(("second",))], [])


@pytest.mark.req("EN-16", "CL-9")
async def test_nothing_is_said_to_wait_before_it_is_kept():
    session, told = ClosingSession(), asyncio.Event()
    playing = Playing(session, told.set, lambda *failed: None)
    playing.put(prompt("first"))
    playing.next()
    told.clear()
    playing.put(prompt("second"))
    assert (playing.queued, session.kept) == (0, [])
    async with asyncio.timeout(60):
        while not playing.queued:
            told.clear()
            await told.wait()
    assert (playing.queued, session.kept) == (1, [Queue(("second",))])
