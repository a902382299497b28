"""Taking over a turn: from every point of its journal, with the agent and model of its prompt, and released cleanly."""

import asyncio

import pytest

from ostler.backends.engine.backend import Engine
from ostler.backends.scripted import ScriptedBackend
from ostler.core.errors import JournalError, UsageError
from ostler.core.events import MessageDone, StateChanged, ToolCalled, ToolFinished, ToolStarted, TurnEnded, TurnStarted
from ostler.core.prompt import Prompt, PromptTarget, TextContent
from ostler.core.sessions import SetOption
from ostler.core.tools import ToolCall
from ostler.journal.memory_journal import MemoryJournal
from ostler.testing.fake_tool import FakeTool
from ostler.testing.scripted_model import ScriptedCall, ScriptedLine, ScriptedModel
from ostler.testing.session_fixture import make_prompt, open_test_session, run_turn
from ostler.workspace.local_workspace import LocalWorkspace

pytestmark = pytest.mark.req("SV-8", "SV-7")
SCRIPT = (
    ScriptedLine("Looking.", (ScriptedCall("probe", {"n": 1}), ScriptedCall("probe", {"n": 2}))),
    ScriptedLine("Once more.", (ScriptedCall("probe", {"n": 3}),)),
    ScriptedLine("Found."),
)
CALL = ToolCall("c1", "probe", {})


def open_engine(tmp_path, lines, journal=None, takeover=False):
    model, tool = ScriptedModel(lines), FakeTool("probe")
    engine = Engine(make_model=lambda name: model, tools=lambda: [tool.spec], system=lambda: "Be good.")
    workspace = LocalWorkspace(str(tmp_path))
    return model, tool, open_test_session(engine, [tool], workspace, journal=journal, takeover=takeover)


async def test_turn_is_continued_from_every_point_of_its_journal(tmp_path):
    model, _, opening = open_engine(tmp_path, SCRIPT)
    session = await opening
    await run_turn(session, "go")
    envelopes = session._journal.envelopes
    await session.aclose()
    kinds = [type(envelope.event) for envelope in envelopes]
    for end in range(kinds.index(TurnStarted) + 1, kinds.index(TurnEnded) + 1):
        kept = [envelope.event for envelope in envelopes[:end]]
        replies = sum(isinstance(event, MessageDone) for event in kept)
        journal = MemoryJournal("session-1", envelopes[:end])
        model, _, opening = open_engine(tmp_path, SCRIPT[replies:], journal, takeover=True)
        again = await opening
        assert again.turn is not None, f"after {kinds[end - 1].__name__}"
        assert (await again.turn.wait()).reason == "done"
        model.finish()
        events = [envelope.event for envelope in journal.envelopes]
        starts = [event.call_id for event in events if isinstance(event, ToolStarted)]
        results = [event.result for event in events if isinstance(event, ToolFinished)]
        assert len(starts) == len(set(starts)) == len(results) == len({result.call_id for result in results}) == 3
        unknown = len([1 for event in kept if isinstance(event, ToolStarted)]) - len(
            [1 for event in kept if isinstance(event, ToolFinished)]
        )
        assert [result.status for result in results].count("unknown") == unknown
        assert len([1 for event in events if isinstance(event, TurnEnded)]) == 1
        await again.aclose()


async def test_engine_has_no_turn_to_continue_after_its_end(tmp_path):
    _, _, opening = open_engine(tmp_path, [ScriptedLine("Done.")])
    session = await opening
    await run_turn(session, "go")
    with pytest.raises(UsageError, match="no turn to continue"):
        await session._backend.run_turn(None)
    await session.aclose()


async def test_continued_turn_has_the_model_of_its_prompt_and_reports_its_state(tmp_path):
    prompt = Prompt("p1", (TextContent("go"),), target=PromptTarget(model="another"))
    running = asyncio.Event()

    async def wait(context, prompt):
        running.set()
        await asyncio.Event().wait()

    async def proceed(context, prompt):
        assert prompt is None
        assert backend.changes == [SetOption("model", "another")]

    first = await open_test_session(ScriptedBackend([wait]), [], LocalWorkspace(str(tmp_path)))
    first.start(prompt)
    await running.wait()
    await first.release()
    records = first._journal.envelopes
    backend = ScriptedBackend([proceed])
    again = await open_test_session(
        backend, [], LocalWorkspace(str(tmp_path)), journal=MemoryJournal("session-1", records), takeover=True
    )
    subscription = again.subscribe(since=2**62)
    assert (await anext(subscription)).event == StateChanged("planning")
    with pytest.raises(UsageError, match="still running"):
        again.start(make_prompt("another"))
    assert (await again.turn.wait()).reason == "done"
    assert backend.changes[1:] == [SetOption("model", "")]
    await again.aclose()


async def test_released_session_writes_nothing_more_and_cannot_be_used(tmp_path):
    running = asyncio.Event()

    async def hold(arguments, context):
        running.set()
        await asyncio.Event().wait()

    async def call_it(context, prompt):
        context.emit(ToolCalled(CALL))
        await context.run_tool(CALL)

    session = await open_test_session(
        ScriptedBackend([call_it]), [FakeTool("probe", hold)], LocalWorkspace(str(tmp_path))
    )
    session.start(make_prompt("go"))
    await running.wait()
    await session.release()
    count = len(session._journal.envelopes)
    assert type(session._journal.envelopes[-1].event) is ToolStarted
    await session.release()
    await session.aclose()
    with pytest.raises(UsageError, match="closed"):
        session.start(make_prompt("again"))
    with pytest.raises(JournalError):
        session.emit(TurnEnded("turn-1", "done"))
    assert len(session._journal.envelopes) == count


@pytest.mark.parametrize("cancelled_by_user", [True, False])
async def test_turn_that_the_user_cancelled_ends_although_the_session_is_released(tmp_path, cancelled_by_user):
    running = asyncio.Event()

    async def wait(context, prompt):
        running.set()
        await asyncio.Event().wait()

    session = await open_test_session(ScriptedBackend([wait]), [], LocalWorkspace(str(tmp_path)))
    turn = session.start(make_prompt("go"))
    await running.wait()
    if cancelled_by_user:
        turn.cancel()
    await session.release()
    ends = [e.event.reason for e in session._journal.envelopes if isinstance(e.event, TurnEnded)]
    assert ends == (["cancelled"] if cancelled_by_user else [])
