"""Cancelling turns, also those of the remote side, and saving the queue."""

import asyncio
from types import SimpleNamespace

import pytest

from ostler.backends.scripted import ScriptedBackend
from ostler.core.events import Queued, TurnEnded, TurnStarted
from ostler.core.sessions import SetQueue
from ostler.interaction.turn_queue import TurnQueue
from ostler.testing.session_fixture import make_prompt, open_test_session
from ostler.workspace.local_workspace import LocalWorkspace


@pytest.mark.parametrize("received", [False, True])
async def test_turn_of_the_remote_side_is_cancelled(tmp_path, received):
    async def remote(context, prompt):
        await asyncio.Event().wait()

    session = await open_test_session(ScriptedBackend([remote]), [], LocalWorkspace(str(tmp_path)))
    queue = TurnQueue(session, lambda: None, lambda why, words: None)
    assert not queue.cancel()
    session.remote_turn_started(make_prompt("from afar"))
    turn = session.turn
    if received:
        queue.on_event(TurnStarted(turn.id, make_prompt("from afar")))
    assert queue.cancel()
    async with asyncio.timeout(60):
        assert (await turn.wait()).reason == "cancelled"
    await session.aclose()


class ClosingSession:
    """A session whose turn is cancelled when the session is closed."""

    turn = None
    state = SimpleNamespace(queued=())
    info = SimpleNamespace(keeps_queue=False)

    def __init__(self):
        self.saved = []
        self.closing = lambda: None

    def start(self, prompt):
        return SimpleNamespace(id="turn-1")

    async def apply(self, change):
        self.saved.append(change)
        return True

    async def aclose(self):
        self.closing()


@pytest.mark.req("CL-9")
async def test_queue_stays_saved_on_exit():
    session, failed = ClosingSession(), []
    queue = TurnQueue(session, lambda: None, lambda *changed: failed.append(changed))
    queue.enqueue(make_prompt("first"))
    queue.start_next()
    queue.enqueue(make_prompt("second"))

    def closing():
        queue.on_event(TurnEnded("turn-1", "cancelled"))
        queue.drain()

    session.closing = closing
    await queue.aclose()
    await asyncio.sleep(0)
    assert (session.saved, failed) == ([SetQueue(("second",))], [])


@pytest.mark.req("EN-16", "CL-9")
async def test_queue_is_reported_after_it_is_saved():
    session, changed = ClosingSession(), asyncio.Event()
    queue = TurnQueue(session, changed.set, lambda *failed: None)
    queue.enqueue(make_prompt("first"))
    queue.start_next()
    changed.clear()
    queue.enqueue(make_prompt("second"))
    assert (queue.queued, session.saved) == (0, [])
    async with asyncio.timeout(60):
        while not queue.queued:
            changed.clear()
            await changed.wait()
    assert (queue.queued, session.saved) == (1, [SetQueue(("second",))])


@pytest.mark.req("SV-12")
async def test_prompts_of_other_clients_are_known_while_the_queue_is_saved(monkeypatch):
    session, saved = ClosingSession(), asyncio.Event()
    monkeypatch.setattr(session, "info", SimpleNamespace(keeps_queue=True))

    async def apply(change):
        return await saved.wait()

    monkeypatch.setattr(session, "apply", apply)
    queue = TurnQueue(session, lambda: None, lambda *failed: None)
    queue.enqueue(make_prompt("first"))
    queue.start_next()
    queue.enqueue(own := make_prompt("second", "own"))
    queue.on_event(Queued(("theirs",), (make_prompt("theirs", "other"),)))
    assert queue.queued_texts == ("second", "theirs")
    saved.set()
    queue.on_event(Queued(("theirs", "second"), (make_prompt("theirs", "other"), own)))
    assert queue.queued_texts == ("second", "theirs")
    await queue.aclose()
