"""Taking back: the backend hears of it, what was run stays run, and what it cannot forget is told."""

import pytest

from ostler.backends.scripted import ScriptedBackend
from ostler.testing.fake_tool import FakeTool
from ostler.testing.stagehand import open_session, play
from ostler.vocabulary.events import Notice, Reverted, ToolCalled
from ostler.vocabulary.sessions import Rename, Revert
from ostler.vocabulary.tools import ToolCall
from ostler.workspace.ground import Workspace


class Remembering(ScriptedBackend):
    """A far side that cannot forget."""

    async def apply(self, change):
        await super().apply(change)
        return False


@pytest.fixture
def ground(tmp_path):
    return Workspace(str(tmp_path))


async def nothing(stage, said):
    return None


def warned(session):
    return [event.text for event in session.past() if isinstance(event, Notice)]


@pytest.mark.req("EN-13")
async def test_the_backend_hears_of_reverts_and_titles(ground):
    backend = ScriptedBackend([nothing])
    session = await open_session(backend, [], ground)
    at = session.records()[-1].seq
    await play(session, "one")
    assert await session.apply(Revert(at))
    assert await session.apply(Rename("A title"))
    assert backend.changes == [Revert(at), Rename("A title")]
    assert warned(session) == []
    await session.aclose()


@pytest.mark.req("EN-13")
async def test_a_backend_that_cannot_forget_does_not_keep_the_session_from_it(ground):
    session = await open_session(Remembering([nothing]), [], ground)
    at = session.records()[-1].seq
    await play(session, "one")
    head = session.records()[-1].seq
    assert await session.apply(Revert(at))
    assert warned(session) == ["scripted still remembers what was taken back"]
    assert await session.apply(Revert(head))  # and again: there it is right to remember
    assert warned(session) == []
    assert len([e for e in session._journal.past() if isinstance(e.event, Reverted)]) == 2
    await session.aclose()


@pytest.mark.req("EN-13", "EN-2")
async def test_a_call_that_was_reverted_does_not_run_again(ground):
    call = ToolCall("1", "probe", {})

    async def act(stage, said):
        stage.emit(ToolCalled(call))
        await stage.run_tool(call)

    tool = FakeTool("probe")
    session = await open_session(ScriptedBackend([act, act]), [tool], ground)
    at = session.records()[-1].seq
    await play(session, "one")
    await session.apply(Revert(at))
    await play(session, "two")
    assert len(tool.runs) == 1
    await session.aclose()
