"""A session that goes on: what was reverted, what was damaged, what was cut, and what a disk was asked to keep."""

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


def saying(words, *events):
    async def act(context, said):
        for event in events:
            context.emit(event)
        context.emit(MessageDone(Message(f"m-{words}", (TextContent(words),))))

    return act


def words(session):
    return [event.message.text for event in session.events() if isinstance(event, MessageDone)]


def number(session, kind, which=-1):
    """The record of an event of a kind."""
    return [envelope.seq for envelope in session._journal.records() if isinstance(envelope.event, kind)][which]


@pytest.mark.req("SE-3", "EN-13")
async def test_a_revert_takes_the_conversation_and_the_plan_back_and_a_later_one_brings_them_again(workspace):
    todo = TodosChanged((Todo("1", "later"),))
    journal = MemoryJournal("s")
    session = await open_test_session(
        ScriptedBackend([saying("a"), saying("b", todo), saying("c")]), [], workspace, journal=journal
    )
    await run_turn(session, "one")
    first, _ = number(session, TurnEnded), await run_turn(session, "two")
    second = number(session, TurnEnded)
    assert await session.apply(Revert(first))
    assert (words(session), session.state.todos) == (["a"], ())
    await run_turn(session, "three")
    assert words(session) == ["a", "c"]
    assert await session.apply(Revert(second))
    assert (words(session), session.state.todos) == (["a", "b"], todo.items)
    again = await open_test_session(ScriptedBackend([]), [], workspace, journal=journal)
    assert (words(again), again.state.todos) == (["a", "b"], todo.items)
    assert again.state.turns == 3
    await again.aclose()


@pytest.mark.req("SE-3")
async def test_a_revert_waits_for_its_turn_to_end_and_goes_only_where_the_session_was(workspace):
    hold = asyncio.Event()

    async def act(context, said):
        await hold.wait()

    session = await open_test_session(ScriptedBackend([act]), [], workspace)
    turn = session.start(Prompt("p", (TextContent("go"),)))
    assert not await session.apply(Revert(1))
    hold.set()
    await turn.wait()
    assert not await session.apply(Revert(-1))
    assert not await session.apply(Revert(10_000))
    assert await session.apply(Revert(1))
    await session.aclose()


@pytest.mark.req("SE-3", "PM-6")
def test_a_revert_does_not_take_back_what_a_person_allowed_revoked_or_chose_or_what_was_spent():
    rule = Rule("bash", "*", "allow", "yes")
    events = [RuleAdded(rule), UsageReported("m", 1, 1, cost=0.5), OptionChanged("model", "big"), Renamed("title")]
    records = [Envelope(seq, 1.0, event) for seq, event in enumerate([*events, RuleRevoked(rule), Reverted(1)], 1)]
    state = state_from_records(MemoryJournal("s", records).records())
    assert (state.rules, len(state.usage), state.options, state.title) == ([], 1, {"model": "big"}, "title")


@pytest.mark.req("SE-1")
async def test_the_state_of_old_turns_is_the_same_whether_it_was_lived_or_read(workspace, tmp_path):
    calls = [ToolCall(str(n), "probe", {}) for n in range(4)]

    def calling(call, *events):
        async def act(context, said):
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
    place = store.session("p", "s1")
    session = await open_test_session(ScriptedBackend(acts), [FakeTool("probe")], workspace, journal=store.open(place))
    for text in "abc":
        await run_turn(session, text)
    lived = {**vars(session.state)}
    await session.aclose()
    read = {**vars(state_from_records(store.open(place).records()))}
    assert lived == read
    assert lived["calls"] == {}


@pytest.mark.req("SE-1")
async def test_a_call_of_an_old_turn_is_answered_from_the_journal_and_not_run_again(workspace, tmp_path):
    tool, call = FakeTool("probe"), ToolCall("c1", "probe", {})

    async def act(context, said):
        context.emit(ToolCalled(call))
        await context.run_tool(call)

    store = JournalStore(tmp_path)
    place = store.session("p", "s1")
    first = await open_test_session(ScriptedBackend([act]), [tool], workspace, journal=store.open(place))
    await run_turn(first, "one")
    await first.aclose()
    again = await open_test_session(ScriptedBackend([act]), [tool], workspace, journal=store.open(place))
    await run_turn(again, "two")
    assert len(tool.runs) == 1
    await again.aclose()


@pytest.mark.req("SE-1")
async def test_damage_is_told_as_a_notice_once(workspace, tmp_path):
    journal = FileJournal(tmp_path / "s", "s")
    session = await open_test_session(ScriptedBackend([saying("a")]), [], workspace, journal=journal)
    await run_turn(session, "one")
    await session.aclose()
    path = tmp_path / "s" / JOURNAL_NAME
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], b"\0" * 40 + b"\n", *lines[2:], b'{"v":1,"se']))
    told = []
    for _ in range(2):
        again = await open_test_session(ScriptedBackend([]), [], workspace, journal=FileJournal(tmp_path / "s", "s"))
        told.append([event.text for event in again.events() if isinstance(event, Notice)])
        await again.aclose()
    assert len(told[0]) == 2
    assert "skipped 1 damaged record (line 3)" in told[0][0]
    assert "moved to journal.torn" in told[0][1]
    assert told[1] == told[0]


class SlowDisk(MemoryJournal):
    """Each sync waits until it is let through, and may then fail."""

    def __init__(self):
        super().__init__("s")
        self.let_through, self.broken = threading.Event(), False
        self.safe = 0
        self.begun, self.done = [], []

    def sync(self):
        last = self.kinds()[-1]
        self.begun.append(last)
        on_disk = len(self.envelopes)
        assert self.let_through.wait(60)
        if self.broken:
            raise JournalError("the disk is broken")
        self.done.append(last)
        self.safe = max(self.safe, on_disk)

    def kinds(self):
        return [type(record.event).__name__ for record in self.envelopes]


@pytest.mark.req("SE-1")
async def test_a_result_is_synced_beside_the_work_and_the_next_effect_waits_for_it(workspace):
    disk, unsafe, seen = SlowDisk(), [], asyncio.Event()

    async def behaviour(arguments, context):
        unsafe.append(disk.kinds()[disk.safe :])
        return "ok"

    async def act(context, said):
        await context.run_tool(ToolCall("1", "change", {}))
        disk.let_through.clear()
        await context.run_tool(ToolCall("2", "look", {}))  # no effect: waits for no disk
        seen.set()
        await context.run_tool(ToolCall("3", "change", {}))

    tools = [FakeTool("change", behaviour), FakeTool("look", behaviour, effects=False)]
    disk.let_through.set()
    session = await open_test_session(ScriptedBackend([act]), tools, workspace, journal=disk)
    turn = session.start(Prompt("p", (TextContent("go"),)))
    await asyncio.wait_for(seen.wait(), 60)
    assert len(unsafe) == 2
    assert disk.safe < len(disk.envelopes)
    disk.let_through.set()
    assert (await turn.wait()).reason == "done"
    assert unsafe[0] == []
    assert unsafe[2] == []
    assert disk.done[-1] == "TurnEnded"
    await session.aclose()


@pytest.mark.req("SE-1")
async def test_a_sync_that_failed_beside_the_work_stops_the_next_effect(workspace):
    disk, tool = SlowDisk(), FakeTool("change")

    async def act(context, said):
        await context.run_tool(ToolCall("1", "change", {}))
        disk.broken = True
        context.emit(ToolCalled(ToolCall("2", "change", {})))
        await context.run_tool(ToolCall("2", "change", {}))

    disk.let_through.set()
    session = await open_test_session(ScriptedBackend([act]), [tool], workspace, journal=disk)
    ended = await session.start(Prompt("p", (TextContent("go"),))).wait()
    assert (ended.reason, ended.fault.message) == ("failed", "the disk is broken")
    assert len(tool.runs) == 1
    await session.aclose()


def a_turn(chance, seq):
    """The records of a turn as a process would have written them, with several calls in several messages."""
    yield TurnStarted(f"t{seq}", Prompt("p", (TextContent("go"),)))
    for step in range(chance.randint(1, 3)):
        calls = [ToolCall(f"{seq}-{step}-{n}", "probe", {}) for n in range(chance.randint(0, 3))]
        yield MessageDone(Message(f"m{seq}-{step}", (TextContent("so"), *map(CallPart, calls))))
        for call in calls:
            yield ToolCalled(call)
        for call in calls:
            yield ToolStarted(call.id, "probe")
    yield TurnEnded(f"t{seq}", "done")


@pytest.mark.req("SE-1")
async def test_wherever_a_session_is_cut_its_next_request_is_valid(workspace):
    chance = random.Random(7)
    for _ in range(150):
        events = [event for turn in range(3) for event in a_turn(chance, turn)]
        cut = events[: chance.randint(0, len(events))]
        journal = MemoryJournal("s", [Envelope(seq, 1.0, event) for seq, event in enumerate(cut, 1)])
        session = await open_test_session(ScriptedBackend([]), [], workspace, journal=journal)
        said = fold_history(session.events())
        for before, after in zip([None, *said], [*said, None], strict=True):
            calls = [call.id for call in before.message.calls] if isinstance(before, AssistantMessage) else []
            assert calls == (
                [result.call_id for result in after.results] if isinstance(after, ToolResultsMessage) else []
            )
        assert not said or isinstance(said[0], UserMessage)
        assert session.state.turn is None
        await session.aclose()


@pytest.mark.req("SE-3")
def test_a_session_nobody_plays_can_be_named_and_mended(tmp_path):
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
