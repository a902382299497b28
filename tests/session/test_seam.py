"""What a face sees of a session: the turn that runs, what can be called, what was kept, and that it answers itself."""

import asyncio

import pytest

from ostler.backends.scripted import ScriptedBackend
from ostler.core.events import PermissionAsked, PermissionDecided, ToolCalled
from ostler.core.permission import Decision
from ostler.core.tools import ToolCall
from ostler.testing.fake_tool import FakeTool
from ostler.testing.session_fixture import ASK_ALL, make_prompt, open_test_session
from ostler.workspace.local_workspace import LocalWorkspace

PATIENCE = 60


@pytest.fixture
def workspace(tmp_path):
    return LocalWorkspace(str(tmp_path))


async def test_a_turn_that_nobody_here_began_can_be_cancelled(workspace):
    began = asyncio.Event()

    async def far(context, said):
        began.set()
        await asyncio.Event().wait()

    session = await open_test_session(ScriptedBackend([far]), [], workspace)
    assert session.turn is None
    session.remote_turn_started(make_prompt("from afar"))
    async with asyncio.timeout(PATIENCE):
        await began.wait()
        session.turn.cancel()
        assert (await session.turn.wait()).reason == "cancelled"
    assert session.turn is None
    await session.aclose()


async def test_what_can_be_called_and_what_was_kept_are_told(workspace):
    session = await open_test_session(ScriptedBackend([]), [FakeTool("probe")], workspace)
    assert [tool.name for tool in session.tools()] == ["probe"]
    assert session.records().type_at(0) == "session_opened"
    await session.aclose()


@pytest.mark.req("PM-6")
@pytest.mark.parametrize(("said", "kept"), [("policy", "person"), ("person", "person"), ("nobody", "nobody")])
async def test_a_face_cannot_answer_as_the_policy(workspace, said, kept):
    async def act(context, words):
        call = ToolCall("1", "probe", {})
        context.emit(ToolCalled(call))
        await context.run_tool(call)

    session = await open_test_session(ScriptedBackend([act]), [FakeTool("probe")], workspace, policy=ASK_ALL)
    reading = session.subscribe(since=2**62)
    turn = session.start(make_prompt("go"))
    async with asyncio.timeout(PATIENCE):
        while not isinstance(asked := (await anext(reading)).event, PermissionAsked):
            pass
        session.answer(asked.ask_id, Decision("allow", by=said))
        await turn.wait()
    (decided,) = [event for event in session.events() if isinstance(event, PermissionDecided)]
    assert decided.decision.by == kept
    await session.aclose()
