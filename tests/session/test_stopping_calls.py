"""A cancelled call that does not stop is waited for a limited time; its late result is dropped."""

import asyncio

import pytest

from ostler.backends.scripted import ScriptedBackend
from ostler.core.events import Notice, ToolCalled, ToolFinished, ToolStarted
from ostler.core.tools import ToolCall
from ostler.journal.memory_journal import MemoryJournal
from ostler.session import call_runner
from ostler.session.session import LocalSession
from ostler.testing.fake_tool import FakeTool
from ostler.testing.session_fixture import ALLOW_ALL, make_prompt, open_test_session
from ostler.tools.host import LocalToolHost
from ostler.workspace.local_workspace import LocalWorkspace

pytestmark = pytest.mark.req("CL-9", "SV-7")
CALL = ToolCall("c1", "stubborn", {})


@pytest.fixture(autouse=True)
def short_limit(monkeypatch):
    monkeypatch.setattr(call_runner, "STOP_SECONDS", 0.05)


class Stubborn:
    """Ignores cancellation until `stop` is set."""

    def __init__(self):
        self.running, self.stop, self.stopped = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def wait(self):
        self.running.set()
        while not self.stop.is_set():
            try:
                await self.stop.wait()
            except asyncio.CancelledError:
                continue
        self.stopped.set()

    async def behave(self, arguments, context):
        await self.wait()
        return "a late result"


async def call_it(context, prompt):
    context.emit(ToolCalled(CALL))
    await context.run_tool(CALL)


async def answer(context, prompt):
    assert (await context.run_tool(CALL)).status in ("unknown", "cancelled")


def results(session):
    return [event.result for event in session.events() if isinstance(event, ToolFinished)]


@pytest.mark.parametrize(("effects", "status"), [(True, "unknown"), (False, "cancelled")])
async def test_turn_ends_without_the_call_and_drops_its_late_result(tmp_path, effects, status):
    stubborn = Stubborn()
    tool = FakeTool("stubborn", stubborn.behave, effects=effects)
    session = await open_test_session(ScriptedBackend([call_it, answer]), [tool], LocalWorkspace(str(tmp_path)))
    turn = session.start(make_prompt("go"))
    await stubborn.running.wait()
    turn.cancel()
    assert (await turn.wait()).reason == "cancelled"
    assert [result.status for result in results(session)] == [status]
    notices = [event.text for event in session.events() if isinstance(event, Notice)]
    assert notices == ["stubborn has not stopped after 0.05 seconds; its result will be ignored"]
    assert (await session.start(make_prompt("go on")).wait()).reason == "done"  # the call does not run again
    stubborn.stop.set()
    await stubborn.stopped.wait()
    await session.aclose()
    assert ([result.status for result in results(session)], len(tool.runs)) == ([status], 1)


async def test_session_closes_although_a_call_of_the_user_does_not_stop(tmp_path):
    stubborn = Stubborn()
    tool = FakeTool("stubborn", stubborn.behave)
    session = await open_test_session(ScriptedBackend([]), [tool], LocalWorkspace(str(tmp_path)))
    call = asyncio.create_task(session.call(ToolCall("c1", "stubborn", {}, origin="person")))
    await stubborn.running.wait()
    await session.aclose()
    assert (await call).status == "unknown"
    assert [result.status for result in results(session)] == ["unknown"]
    stubborn.stop.set()
    await stubborn.stopped.wait()


async def test_call_that_stops_in_time_keeps_its_true_result(tmp_path, monkeypatch):
    monkeypatch.setattr(call_runner, "STOP_SECONDS", 60.0)
    stubborn = Stubborn()
    tool = FakeTool("stubborn", stubborn.behave)
    session = await open_test_session(ScriptedBackend([call_it]), [tool], LocalWorkspace(str(tmp_path)))
    turn = session.start(make_prompt("go"))
    await stubborn.running.wait()
    turn.cancel()
    stubborn.stop.set()
    await turn.wait()
    assert [(result.status, result.for_model) for result in results(session)] == [("ok", "a late result")]
    await session.aclose()


async def test_abandoned_call_does_not_start_later(tmp_path):
    stubborn, tool = Stubborn(), FakeTool("stubborn")

    class Interceptor:
        async def before(self, call, context):
            await stubborn.wait()
            return ""

        async def after(self, call, result, context):
            raise AssertionError("it must not run")

    workspace = LocalWorkspace(str(tmp_path))
    session = LocalSession(
        backend=ScriptedBackend([call_it]),
        tools=LocalToolHost([tool], workspace, interceptor=Interceptor()),
        journal=MemoryJournal("session-1"),
        policy=ALLOW_ALL,
        cwd=workspace.root,
    )
    await session.open(version="test", backend="test", options={})
    turn = session.start(make_prompt("go"))
    await stubborn.running.wait()
    turn.cancel()
    await turn.wait()
    (abandoned,) = session._call_runner._abandoned.values()
    stubborn.stop.set()
    await asyncio.wait([abandoned])
    assert [result.status for result in results(session)] == ["cancelled"]
    assert (tool.runs, [e for e in session.events() if isinstance(e, ToolStarted)]) == ([], [])
    await session.aclose()
