"""Stopping what runs: also a turn that the far side began."""

import asyncio

import pytest

from ostler.backends.scripted import ScriptedBackend
from ostler.faces.repl.playing import Playing
from ostler.testing.stagehand import open_session, prompt
from ostler.vocabulary.events import TurnStarted
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
