"""What a turn waits for is told whenever it changes, whoever thinks."""

import asyncio

import pytest

from ostler.backends.scripted import ScriptedBackend
from ostler.testing.fake_tool import FakeTool
from ostler.testing.stagehand import ALLOW_ALL, ASK_ALL, open_session, play, prompt
from ostler.vocabulary.errors import BackendError
from ostler.vocabulary.events import PermissionAsked, StateChanged, TextDelta, ToolCalled, ToolFinished
from ostler.vocabulary.permission import Decision
from ostler.vocabulary.sessions import SessionInfo
from ostler.vocabulary.tools import ToolCall, ToolResult
from ostler.workspace.ground import Workspace

pytestmark = pytest.mark.req("EN-1")

PATIENCE = 60
FAR = SessionInfo("far", acts_itself=True)


@pytest.fixture
def ground(tmp_path):
    return Workspace(str(tmp_path))


def states(events):
    return [event.state for event in events if isinstance(event, StateChanged)]


async def calling(stage, said):
    call = ToolCall("1", "probe", {})
    stage.emit(ToolCalled(call))
    await stage.run_tool(call)
    stage.emit(TextDelta("m", "well"))


async def test_after_an_answered_ask_the_tool_runs(ground):
    seen = []

    async def probe(arguments, context):
        seen.append(session._stating.told)
        return "ok"

    session = await open_session(ScriptedBackend([calling]), [FakeTool("probe", probe)], ground, policy=ASK_ALL)
    reading = session.subscribe(since=2**62)
    async with asyncio.timeout(PATIENCE):
        turn = session.start(prompt("go"))
        events = []
        while not isinstance(event := (await anext(reading)).event, PermissionAsked):
            events.append(event)
        session.settle(event.ask_id, Decision("allow"))
        await turn.wait()
    reading.close()
    events += [envelope.event async for envelope in reading]
    generated = ["planning", "model_generating", "done", "idle"]
    assert states(events) == ["planning", "awaiting_permission", "planning", "tool_running", *generated]
    assert seen == ["tool_running"]
    await session.aclose()


async def test_nobody_generates_between_an_answer_and_the_call(ground):
    async def said_so(stage, said):
        stage.emit(StateChanged("model_generating"))
        await calling(stage, said)

    session = await open_session(ScriptedBackend([said_so]), [FakeTool("probe")], ground, policy=ASK_ALL)
    reading = session.subscribe(since=2**62)
    events = []
    async with asyncio.timeout(PATIENCE):
        turn = session.start(prompt("go"))
        while not isinstance(event := (await anext(reading)).event, PermissionAsked):
            events.append(event)
        session.settle(event.ask_id, Decision("allow"))
        await turn.wait()
    reading.close()
    events += [envelope.event async for envelope in reading]
    assert states(events)[:5] == ["planning", "model_generating", "awaiting_permission", "planning", "tool_running"]
    await session.aclose()


async def test_a_far_side_that_acts_by_itself_has_states_too(ground):
    async def act(stage, said):
        stage.emit(TextDelta("m", "let me look"))
        stage.emit(TextDelta("m", " at it"))
        stage.emit(ToolCalled(ToolCall("far-1", "look", {})))
        stage.emit(ToolFinished(ToolResult("far-1", "ok", "seen")))
        stage.emit(TextDelta("n", "so"))

    session = await open_session(ScriptedBackend([act], FAR), [], ground)
    events, _ = await play(session, "go")
    looking = ["planning", "model_generating", "tool_running"]
    assert states(events) == [*looking, "planning", "model_generating", "done", "idle"]
    await session.aclose()


async def test_how_a_turn_ends(ground):
    async def fails(stage, said):
        raise BackendError("no")

    async def waits(stage, said):
        await asyncio.Event().wait()

    session = await open_session(ScriptedBackend([fails, waits]), [], ground)
    assert states((await play(session, "one"))[0]) == ["planning", "error", "idle"]
    reading = session.subscribe(since=2**62)
    turn = session.start(prompt("two"))
    turn.cancel()
    async with asyncio.timeout(PATIENCE):
        await turn.wait()
    reading.close()
    assert states([envelope.event async for envelope in reading]) == ["planning", "idle"]
    await session.aclose()


async def test_a_call_by_hand_is_no_state_of_a_turn(ground):
    session = await open_session(ScriptedBackend([]), [FakeTool("probe")], ground, policy=ALLOW_ALL)
    reading = session.subscribe(since=2**62)
    await session.call(ToolCall("h", "probe", {}, "person"))
    reading.close()
    assert states([envelope.event async for envelope in reading]) == []
    await session.aclose()


async def test_what_a_backend_tells_of_more_than_its_thinking_is_not_heard(ground):
    async def act(stage, said):
        stage.emit(StateChanged("tool_running"))
        stage.emit(StateChanged("done"))
        stage.emit(StateChanged("model_generating"))
        stage.emit(StateChanged("model_generating"))

    session = await open_session(ScriptedBackend([act]), [], ground)
    events, _ = await play(session, "go")
    assert states(events) == ["planning", "model_generating", "done", "idle"]
    await session.aclose()
