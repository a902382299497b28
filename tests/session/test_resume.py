"""Resumed sessions: after reverts, damage and crashes, and with slow or failing disks."""

import asyncio
import random
import threading

import pytest

from ostler.backends.engine.history import fold_history
from ostler.backends.scripted import ScriptedBackend
from ostler.core.errors import JournalError
from ostler.core.events import (
    Envelope,
    MessageDone,
    Notice,
    OptionChanged,
    Renamed,
    Reverted,
    RuleAdded,
    RuleRevoked,
    TodosChanged,
    ToolCalled,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    UsageReported,
)
from ostler.core.message import CallPart, Message
from ostler.core.permission import Rule
from ostler.core.prompt import Prompt, TextContent
from ostler.core.sessions import Revert
from ostler.core.tools import Todo, ToolCall
from ostler.journal.file_journal import JOURNAL_NAME, FileJournal
from ostler.journal.journal_store import JournalStore
from ostler.journal.memory_journal import MemoryJournal
from ostler.models.model_types import AssistantMessage, ToolResultsMessage, UserMessage
from ostler.session.offline import rename, repair_journal
from ostler.session.state import state_from_records
from ostler.testing.fake_tool import FakeTool
from ostler.testing.session_fixture import open_test_session, run_turn
from ostler.workspace.local_workspace import LocalWorkspace


@pytest.fixture
def workspace(tmp_path):
    return LocalWorkspace(str(tmp_path))


def reply_act(text, *events):
    async def act(context, prompt):
        for event in events:
            context.emit(event)
        context.emit(MessageDone(Message(f"m-{text}", (TextContent(text),))))

    return act


def message_texts(session):
    return [event.message.text for event in session.events() if isinstance(event, MessageDone)]


def seq_of(session, kind, which=-1):
    """Return the sequence number of a record with an event of this type."""
    return [envelope.seq for envelope in session._journal.records() if isinstance(envelope.event, kind)][which]


@pytest.mark.req("SE-3", "EN-13")
async def test_revert_undoes_conversation_and_todos_and_later_revert_restores_them(workspace):
    todo = TodosChanged((Todo("1", "later"),))
    journal = MemoryJournal("s")
    session = await open_test_session(
        ScriptedBackend([reply_act("a"), reply_act("b", todo), reply_act("c")]), [], workspace, journal=journal
    )
    await run_turn(session, "one")
    first, _ = seq_of(session, TurnEnded), await run_turn(session, "two")
    second = seq_of(session, TurnEnded)
    assert await session.apply(Revert(first))
    assert (message_texts(session), session.state.todos) == (["a"], ())
    await run_turn(session, "three")
    assert message_texts(session) == ["a", "c"]
    assert await session.apply(Revert(second))
    assert (message_texts(session), session.state.todos) == (["a", "b"], todo.items)
    reopened = await open_test_session(ScriptedBackend([]), [], workspace, journal=journal)
    assert (message_texts(reopened), reopened.state.todos) == (["a", "b"], todo.items)
    assert reopened.state.turns == 3
    await reopened.aclose()


@pytest.mark.req("SE-3")
async def test_revert_is_rejected_during_turn_and_for_invalid_numbers(workspace):
    release = asyncio.Event()

    async def act(context, prompt):
        await release.wait()

    session = await open_test_session(ScriptedBackend([act]), [], workspace)
    turn = session.start(Prompt("p", (TextContent("go"),)))
    assert not await session.apply(Revert(1))
    release.set()
    await turn.wait()
    assert not await session.apply(Revert(-1))
    assert not await session.apply(Revert(10_000))
    assert await session.apply(Revert(1))
    await session.aclose()


@pytest.mark.req("SE-3", "PM-6")
def test_revert_keeps_rules_options_and_costs():
    rule = Rule("bash", "*", "allow", "yes")
    events = [RuleAdded(rule), UsageReported("m", 1, 1, cost=0.5), OptionChanged("model", "big"), Renamed("title")]
    records = [Envelope(seq, 1.0, event) for seq, event in enumerate([*events, RuleRevoked(rule), Reverted(1)], 1)]
    state = state_from_records(MemoryJournal("s", records).records())
    assert (state.rules, len(state.usage), state.options, state.title) == ([], 1, {"model": "big"}, "title")


@pytest.mark.req("SE-1")
@pytest.mark.invariant("E5")
async def test_state_loaded_from_journal_equals_live_state(workspace, tmp_path):
    calls = [ToolCall(str(n), "probe", {}) for n in range(4)]

    def calling(call, *events):
        async def act(context, prompt):
            context.emit(MessageDone(Message("m", (CallPart(call),))))
            await context.run_tool(call)
            for event in events:
                context.emit(event)

        return act

    acts = [
        calling(calls[0], UsageReported("m", 3, 4)),
        calling(calls[1], Renamed("a title"), RuleAdded(Rule("x", "*", "allow"))),
        calling(calls[2], TodosChanged((Todo("1", "x"),)), OptionChanged("model", "m2")),
    ]
    store = JournalStore(tmp_path)
    location = store.session("p", "s1")
    session = await open_test_session(
        ScriptedBackend(acts), [FakeTool("probe")], workspace, journal=store.open(location)
    )
    for text in "abc":
        await run_turn(session, text)
    live_state = {**vars(session.state)}
    await session.aclose()
    loaded_state = {**vars(state_from_records(store.open(location).records()))}
    assert live_state == loaded_state
    assert live_state["calls"] == {}


@pytest.mark.req("SE-1")
@pytest.mark.invariant("P2")
async def test_call_of_earlier_turn_is_answered_from_journal(workspace, tmp_path):
    tool, call = FakeTool("probe"), ToolCall("c1", "probe", {})

    async def act(context, prompt):
        context.emit(ToolCalled(call))
        await context.run_tool(call)

    store = JournalStore(tmp_path)
    location = store.session("p", "s1")
    first = await open_test_session(ScriptedBackend([act]), [tool], workspace, journal=store.open(location))
    await run_turn(first, "one")
    await first.aclose()
    reopened = await open_test_session(ScriptedBackend([act]), [tool], workspace, journal=store.open(location))
    await run_turn(reopened, "two")
    assert len(tool.runs) == 1
    await reopened.aclose()


@pytest.mark.req("SE-1")
async def test_damage_is_reported_once(workspace, tmp_path):
    journal = FileJournal(tmp_path / "s", "s")
    session = await open_test_session(ScriptedBackend([reply_act("a")]), [], workspace, journal=journal)
    await run_turn(session, "one")
    await session.aclose()
    path = tmp_path / "s" / JOURNAL_NAME
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], b"\0" * 40 + b"\n", *lines[2:], b'{"v":1,"se']))
    notices = []
    for _ in range(2):
        reopened = await open_test_session(ScriptedBackend([]), [], workspace, journal=FileJournal(tmp_path / "s", "s"))
        notices.append([event.text for event in reopened.events() if isinstance(event, Notice)])
        await reopened.aclose()
    assert len(notices[0]) == 2
    assert "skipped 1 damaged record (line 3)" in notices[0][0]
    assert "moved to journal.torn" in notices[0][1]
    assert notices[1] == notices[0]


class SlowDisk(MemoryJournal):
    """A journal whose syncs wait until they are released, and may then fail."""

    def __init__(self):
        super().__init__("s")
        self.released, self.broken = threading.Event(), False
        self.synced_count = 0
        self.started, self.done = [], []

    def sync(self):
        last = self.kinds()[-1]
        self.started.append(last)
        on_disk = len(self.envelopes)
        assert self.released.wait(60)
        if self.broken:
            raise JournalError("the disk is broken")
        self.done.append(last)
        self.synced_count = max(self.synced_count, on_disk)

    def kinds(self):
        return [type(record.event).__name__ for record in self.envelopes]


@pytest.mark.req("SE-1")
async def test_result_is_synced_in_background_and_next_side_effect_waits(workspace):
    disk, unsynced, looked = SlowDisk(), [], asyncio.Event()

    async def behaviour(arguments, context):
        unsynced.append(disk.kinds()[disk.synced_count :])
        return "ok"

    async def act(context, prompt):
        await context.run_tool(ToolCall("1", "change", {}))
        disk.released.clear()
        await context.run_tool(ToolCall("2", "look", {}))  # no side effect: does not wait for the disk
        looked.set()
        await context.run_tool(ToolCall("3", "change", {}))

    tools = [FakeTool("change", behaviour), FakeTool("look", behaviour, effects=False)]
    disk.released.set()
    session = await open_test_session(ScriptedBackend([act]), tools, workspace, journal=disk)
    turn = session.start(Prompt("p", (TextContent("go"),)))
    await asyncio.wait_for(looked.wait(), 60)
    assert len(unsynced) == 2
    assert disk.synced_count < len(disk.envelopes)
    disk.released.set()
    assert (await turn.wait()).reason == "done"
    assert unsynced[0] == []
    assert unsynced[2] == []
    assert disk.done[-1] == "TurnEnded"
    await session.aclose()


@pytest.mark.req("SE-1")
async def test_failed_background_sync_stops_next_side_effect(workspace):
    disk, tool = SlowDisk(), FakeTool("change")

    async def act(context, prompt):
        await context.run_tool(ToolCall("1", "change", {}))
        disk.broken = True
        context.emit(ToolCalled(ToolCall("2", "change", {})))
        await context.run_tool(ToolCall("2", "change", {}))

    disk.released.set()
    session = await open_test_session(ScriptedBackend([act]), [tool], workspace, journal=disk)
    ended = await session.start(Prompt("p", (TextContent("go"),))).wait()
    assert (ended.reason, ended.fault.message) == ("failed", "the disk is broken")
    assert len(tool.runs) == 1
    await session.aclose()


def random_turn(rng, seq):
    """Yield the events of a random turn, with several calls in several messages."""
    yield TurnStarted(f"t{seq}", Prompt("p", (TextContent("go"),)))
    for step in range(rng.randint(1, 3)):
        calls = [ToolCall(f"{seq}-{step}-{n}", "probe", {}) for n in range(rng.randint(0, 3))]
        yield MessageDone(Message(f"m{seq}-{step}", (TextContent("so"), *map(CallPart, calls))))
        for call in calls:
            yield ToolCalled(call)
        for call in calls:
            yield ToolStarted(call.id, "probe")
    yield TurnEnded(f"t{seq}", "done")


@pytest.mark.req("SE-1")
@pytest.mark.invariant("J2")
async def test_interrupted_session_gives_valid_next_request(workspace):
    rng = random.Random(7)
    for _ in range(150):
        events = [event for turn in range(3) for event in random_turn(rng, turn)]
        prefix = events[: rng.randint(0, len(events))]
        journal = MemoryJournal("s", [Envelope(seq, 1.0, event) for seq, event in enumerate(prefix, 1)])
        session = await open_test_session(ScriptedBackend([]), [], workspace, journal=journal)
        messages = fold_history(session.events())
        for before, after in zip([None, *messages], [*messages, None], strict=True):
            calls = [call.id for call in before.message.calls] if isinstance(before, AssistantMessage) else []
            assert calls == (
                [result.call_id for result in after.results] if isinstance(after, ToolResultsMessage) else []
            )
        assert not messages or isinstance(messages[0], UserMessage)
        assert session.state.turn is None
        await session.aclose()


@pytest.mark.req("SE-3")
def test_closed_session_can_be_renamed_and_repaired(tmp_path):
    journal = FileJournal(tmp_path, "s1")
    journal.append(Envelope(1, 1.0, TurnStarted("t", Prompt("p", (TextContent("go"),)))))
    journal.append(Envelope(2, 1.0, ToolCalled(ToolCall("c", "probe", {}))))
    rename(journal, "A title")
    assert repair_journal(journal) == ["added ToolFinished", "added TurnEnded"]
    assert repair_journal(journal) == []
    events = [envelope.event for envelope in journal.records()]
    assert isinstance(events[-2], ToolFinished)
    assert state_from_records(journal.records()).title == "A title"
    journal.close()
