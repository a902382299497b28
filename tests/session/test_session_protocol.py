"""The session as frontends use it: the running turn, the tools, the records, and answers to requests."""

import asyncio

import pytest

from ostler.backends.scripted import ScriptedBackend
from ostler.core.events import PermissionAsked, PermissionDecided, ToolCalled
from ostler.core.permission import Decision
from ostler.core.tools import ToolCall
from ostler.testing.fake_tool import FakeTool
from ostler.testing.session_fixture import ASK_ALL, make_prompt, open_test_session
from ostler.workspace.local_workspace import LocalWorkspace

TIMEOUT = 60


@pytest.fixture
def workspace(tmp_path):
    return LocalWorkspace(str(tmp_path))


async def test_remote_turn_can_be_cancelled(workspace):
    started = asyncio.Event()

    async def remote_act(context, prompt):
        started.set()
        await asyncio.Event().wait()

    session = await open_test_session(ScriptedBackend([remote_act]), [], workspace)
    assert session.turn is None
    session.remote_turn_started(make_prompt("from the remote side"))
    async with asyncio.timeout(TIMEOUT):
        await started.wait()
        session.turn.cancel()
        assert (await session.turn.wait()).reason == "cancelled"
    assert session.turn is None
    await session.aclose()


async def test_tools_and_records_are_available(workspace):
    session = await open_test_session(ScriptedBackend([]), [FakeTool("probe")], workspace)
    assert [tool.name for tool in session.tools()] == ["probe"]
    assert session.records().type_at(0) == "session_opened"
    await session.aclose()


@pytest.mark.req("PM-6")
@pytest.mark.parametrize(
    ("answered_by", "recorded"), [("policy", "person"), ("person", "person"), ("nobody", "nobody")]
)
async def test_frontend_cannot_answer_as_policy(workspace, answered_by, recorded):
    async def act(context, prompt):
        call = ToolCall("1", "probe", {})
        context.emit(ToolCalled(call))
        await context.run_tool(call)

    session = await open_test_session(ScriptedBackend([act]), [FakeTool("probe")], workspace, policy=ASK_ALL)
    subscription = session.subscribe(since=2**62)
    turn = session.start(make_prompt("go"))
    async with asyncio.timeout(TIMEOUT):
        while not isinstance(request := (await anext(subscription)).event, PermissionAsked):
            pass
        session.answer(request.ask_id, Decision("allow", by=answered_by))
        await turn.wait()
    (decision_event,) = [event for event in session.events() if isinstance(event, PermissionDecided)]
    assert decision_event.decision.by == recorded
    await session.aclose()
