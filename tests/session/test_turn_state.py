"""The turn state is published whenever it changes, with every kind of backend."""

import asyncio

import pytest

from ostler.backends.scripted import ScriptedBackend
from ostler.core.errors import BackendError
from ostler.core.events import PermissionAsked, StateChanged, TextDelta, ToolCalled, ToolFinished
from ostler.core.permission import Decision
from ostler.core.sessions import SessionInfo
from ostler.core.tools import ToolCall, ToolResult
from ostler.testing.fake_tool import FakeTool
from ostler.testing.session_fixture import ALLOW_ALL, ASK_ALL, make_prompt, open_test_session, run_turn
from ostler.workspace.local_workspace import LocalWorkspace

pytestmark = pytest.mark.req("EN-1")

TIMEOUT = 60
REMOTE_INFO = SessionInfo("far", runs_own_tools=True)


@pytest.fixture
def workspace(tmp_path):
    return LocalWorkspace(str(tmp_path))


def states(events):
    return [event.state for event in events if isinstance(event, StateChanged)]


async def call_probe(context, prompt):
    call = ToolCall("1", "probe", {})
    context.emit(ToolCalled(call))
    await context.run_tool(call)
    context.emit(TextDelta("m", "well"))


async def test_states_of_approved_call(workspace):
    states_seen = []

    async def probe(arguments, context):
        states_seen.append(session._turn_state.reported)
        return "ok"

    session = await open_test_session(
        ScriptedBackend([call_probe]), [FakeTool("probe", probe)], workspace, policy=ASK_ALL
    )
    subscription = session.subscribe(since=2**62)
    async with asyncio.timeout(TIMEOUT):
        turn = session.start(make_prompt("go"))
        events = []
        while not isinstance(event := (await anext(subscription)).event, PermissionAsked):
            events.append(event)
        session.answer(event.ask_id, Decision("allow"))
        await turn.wait()
    subscription.close()
    events += [envelope.event async for envelope in subscription]
    generated = ["planning", "model_generating", "done", "idle"]
    assert states(events) == ["planning", "awaiting_permission", "planning", "tool_running", *generated]
    assert states_seen == ["tool_running"]
    await session.aclose()


async def test_state_is_planning_between_approval_and_call(workspace):
    async def report_generating(context, prompt):
        context.emit(StateChanged("model_generating"))
        await call_probe(context, prompt)

    session = await open_test_session(
        ScriptedBackend([report_generating]), [FakeTool("probe")], workspace, policy=ASK_ALL
    )
    subscription = session.subscribe(since=2**62)
    events = []
    async with asyncio.timeout(TIMEOUT):
        turn = session.start(make_prompt("go"))
        while not isinstance(event := (await anext(subscription)).event, PermissionAsked):
            events.append(event)
        session.answer(event.ask_id, Decision("allow"))
        await turn.wait()
    subscription.close()
    events += [envelope.event async for envelope in subscription]
    assert states(events)[:5] == ["planning", "model_generating", "awaiting_permission", "planning", "tool_running"]
    await session.aclose()


async def test_backend_with_own_tools_has_states(workspace):
    async def act(context, prompt):
        context.emit(TextDelta("m", "let me look"))
        context.emit(TextDelta("m", " at it"))
        context.emit(ToolCalled(ToolCall("far-1", "look", {})))
        context.emit(ToolFinished(ToolResult("far-1", "ok", "seen")))
        context.emit(TextDelta("n", "so"))

    session = await open_test_session(ScriptedBackend([act], REMOTE_INFO), [], workspace)
    events, _ = await run_turn(session, "go")
    until_tool = ["planning", "model_generating", "tool_running"]
    assert states(events) == [*until_tool, "planning", "model_generating", "done", "idle"]
    await session.aclose()


async def test_states_of_failed_and_cancelled_turn(workspace):
    async def fail(context, prompt):
        raise BackendError("no")

    async def wait(context, prompt):
        await asyncio.Event().wait()

    session = await open_test_session(ScriptedBackend([fail, wait]), [], workspace)
    assert states((await run_turn(session, "one"))[0]) == ["planning", "error", "idle"]
    subscription = session.subscribe(since=2**62)
    turn = session.start(make_prompt("two"))
    turn.cancel()
    async with asyncio.timeout(TIMEOUT):
        await turn.wait()
    subscription.close()
    assert states([envelope.event async for envelope in subscription]) == ["planning", "idle"]
    await session.aclose()


async def test_manual_call_does_not_change_state(workspace):
    session = await open_test_session(ScriptedBackend([]), [FakeTool("probe")], workspace, policy=ALLOW_ALL)
    subscription = session.subscribe(since=2**62)
    await session.call(ToolCall("h", "probe", {}, "person"))
    subscription.close()
    assert states([envelope.event async for envelope in subscription]) == []
    await session.aclose()


@pytest.mark.invariant("E8")
async def test_backend_can_only_report_model_states(workspace):
    async def act(context, prompt):
        context.emit(StateChanged("tool_running"))
        context.emit(StateChanged("done"))
        context.emit(StateChanged("model_generating"))
        context.emit(StateChanged("model_generating"))

    session = await open_test_session(ScriptedBackend([act]), [], workspace)
    events, _ = await run_turn(session, "go")
    assert states(events) == ["planning", "model_generating", "done", "idle"]
    await session.aclose()
