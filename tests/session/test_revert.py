"""Reverts: the backend is notified, executed calls stay executed, and unsupported reverts are reported."""

import pytest

from ostler.backends.scripted import ScriptedBackend
from ostler.core.events import Notice, Reverted, ToolCalled
from ostler.core.sessions import Rename, Revert
from ostler.core.tools import ToolCall
from ostler.testing.fake_tool import FakeTool
from ostler.testing.session_fixture import open_test_session, run_turn
from ostler.workspace.local_workspace import LocalWorkspace


class BackendWithoutRevert(ScriptedBackend):
    """A backend that does not support reverts."""

    async def apply(self, change):
        await super().apply(change)
        return False


@pytest.fixture
def workspace(tmp_path):
    return LocalWorkspace(str(tmp_path))


async def do_nothing(context, prompt):
    return None


def warnings_of(session):
    return [event.text for event in session.events() if isinstance(event, Notice)]


@pytest.mark.req("EN-13")
async def test_backend_is_notified_of_reverts_and_titles(workspace):
    backend = ScriptedBackend([do_nothing])
    session = await open_test_session(backend, [], workspace)
    start_seq = session.records()[-1].seq
    await run_turn(session, "one")
    assert await session.apply(Revert(start_seq))
    assert await session.apply(Rename("A title"))
    assert backend.changes == [Revert(start_seq), Rename("A title")]
    assert warnings_of(session) == []
    await session.aclose()


@pytest.mark.req("EN-13")
@pytest.mark.invariant("S8")
async def test_session_reverts_even_if_backend_cannot(workspace):
    session = await open_test_session(BackendWithoutRevert([do_nothing]), [], workspace)
    start_seq = session.records()[-1].seq
    await run_turn(session, "one")
    end_seq = session.records()[-1].seq
    assert await session.apply(Revert(start_seq))
    assert warnings_of(session) == ["reverted here, but scripted still has the messages in its context"]
    assert await session.apply(Revert(end_seq))  # restores the messages, so no warning
    assert warnings_of(session) == []
    assert len([e for e in session._journal.records() if isinstance(e.event, Reverted)]) == 2
    await session.aclose()


@pytest.mark.req("EN-13", "EN-2")
@pytest.mark.invariant("P2")
async def test_reverted_call_does_not_run_again(workspace):
    call = ToolCall("1", "probe", {})

    async def act(context, prompt):
        context.emit(ToolCalled(call))
        await context.run_tool(call)

    tool = FakeTool("probe")
    session = await open_test_session(ScriptedBackend([act, act]), [tool], workspace)
    start_seq = session.records()[-1].seq
    await run_turn(session, "one")
    await session.apply(Revert(start_seq))
    await run_turn(session, "two")
    assert len(tool.runs) == 1
    await session.aclose()
