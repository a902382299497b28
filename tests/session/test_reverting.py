"""Taking back: the backend hears of it, what was run stays run, and what it cannot forget is told."""

import pytest

from ostler.backends.scripted import ScriptedBackend
from ostler.core.events import Notice, Reverted, ToolCalled
from ostler.core.sessions import Rename, Revert
from ostler.core.tools import ToolCall
from ostler.testing.fake_tool import FakeTool
from ostler.testing.session_fixture import open_test_session, run_turn
from ostler.workspace.local_workspace import LocalWorkspace


class Remembering(ScriptedBackend):
    """A far side that cannot forget."""

    async def apply(self, change):
        await super().apply(change)
        return False


@pytest.fixture
def workspace(tmp_path):
    return LocalWorkspace(str(tmp_path))


async def nothing(context, said):
    return None


def warned(session):
    return [event.text for event in session.events() if isinstance(event, Notice)]


@pytest.mark.req("EN-13")
async def test_the_backend_hears_of_reverts_and_titles(workspace):
    backend = ScriptedBackend([nothing])
    session = await open_test_session(backend, [], workspace)
    at = session.records()[-1].seq
    await run_turn(session, "one")
    assert await session.apply(Revert(at))
    assert await session.apply(Rename("A title"))
    assert backend.changes == [Revert(at), Rename("A title")]
    assert warned(session) == []
    await session.aclose()


@pytest.mark.req("EN-13")
async def test_a_backend_that_cannot_forget_does_not_keep_the_session_from_it(workspace):
    session = await open_test_session(Remembering([nothing]), [], workspace)
    at = session.records()[-1].seq
    await run_turn(session, "one")
    head = session.records()[-1].seq
    assert await session.apply(Revert(at))
    assert warned(session) == ["reverted here, but scripted still has the messages in its context"]
    assert await session.apply(Revert(head))  # and again: there it is right to remember
    assert warned(session) == []
    assert len([e for e in session._journal.records() if isinstance(e.event, Reverted)]) == 2
    await session.aclose()


@pytest.mark.req("EN-13", "EN-2")
async def test_a_call_that_was_reverted_does_not_run_again(workspace):
    call = ToolCall("1", "probe", {})

    async def act(context, said):
        context.emit(ToolCalled(call))
        await context.run_tool(call)

    tool = FakeTool("probe")
    session = await open_test_session(ScriptedBackend([act, act]), [tool], workspace)
    at = session.records()[-1].seq
    await run_turn(session, "one")
    await session.apply(Revert(at))
    await run_turn(session, "two")
    assert len(tool.runs) == 1
    await session.aclose()
