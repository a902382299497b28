"""What a face sees of a session: the turn that runs, what can be called, what was kept, and that it answers itself."""

import asyncio

import pytest

from ostler.backends.scripted import ScriptedBackend
from ostler.testing.fake_tool import FakeTool
from ostler.testing.stagehand import ASK_ALL, open_session, prompt
from ostler.vocabulary.events import PermissionAsked, PermissionDecided, ToolCalled
from ostler.vocabulary.permission import Decision
from ostler.vocabulary.tools import ToolCall
from ostler.workspace.ground import Workspace

PATIENCE = 60


@pytest.fixture
def ground(tmp_path):
    return Workspace(str(tmp_path))


async def test_a_turn_that_nobody_here_began_can_be_cancelled(ground):
    began = asyncio.Event()

    async def far(stage, said):
        began.set()
        await asyncio.Event().wait()

    session = await open_session(ScriptedBackend([far]), [], ground)
    assert session.turn is None
    session.wake(prompt("from afar"))
    async with asyncio.timeout(PATIENCE):
        await began.wait()
        session.turn.cancel()
        assert (await session.turn.wait()).reason == "cancelled"
    assert session.turn is None
    await session.aclose()


async def test_what_can_be_called_and_what_was_kept_are_told(ground):
    session = await open_session(ScriptedBackend([]), [FakeTool("probe")], ground)
    assert [tool.name for tool in session.tools()] == ["probe"]
    assert session.records().kind(0) == "session_opened"
    await session.aclose()


@pytest.mark.req("PM-6")
@pytest.mark.parametrize(("said", "kept"), [("policy", "person"), ("person", "person"), ("nobody", "nobody")])
async def test_a_face_cannot_answer_as_the_policy(ground, said, kept):
    async def act(stage, words):
        call = ToolCall("1", "probe", {})
        stage.emit(ToolCalled(call))
        await stage.run_tool(call)

    session = await open_session(ScriptedBackend([act]), [FakeTool("probe")], ground, policy=ASK_ALL)
    reading = session.subscribe(since=2**62)
    turn = session.start(prompt("go"))
    async with asyncio.timeout(PATIENCE):
        while not isinstance(asked := (await anext(reading)).event, PermissionAsked):
            pass
        session.settle(asked.ask_id, Decision("allow", by=said))
        await turn.wait()
    (decided,) = [event for event in session.past() if isinstance(event, PermissionDecided)]
    assert decided.decision.by == kept
    await session.aclose()
