"""Files derived from the journal while it grows: history.xnl, meta.json, todos.json; all can be rebuilt."""

import json
import os

import pytest

from ostler.core.events import (
    Compacted,
    Envelope,
    InfoChanged,
    MessageDone,
    OptionChanged,
    PrefixBuilt,
    Renamed,
    Reverted,
    SessionOpened,
    Steered,
    TodosChanged,
    ToolCalled,
    ToolFinished,
    TurnEnded,
    TurnStarted,
)
from ostler.core.message import CallPart, Message, ThoughtPart
from ostler.core.prompt import EmbeddedResource, ImageContent, Prompt, ResourceLink, TextContent
from ostler.core.sessions import SessionInfo, SessionOption
from ostler.core.tools import Todo, ToolCall, ToolResult
from ostler.journal import history_xnl
from ostler.journal.conversation import ConversationMessage, read_conversation
from ostler.journal.file_journal import JOURNAL_NAME, read_journal
from ostler.journal.history_xnl import to_xnl
from ostler.journal.journal_store import JournalStore
from ostler.journal.session_meta import SessionMeta, format_time, read_meta
from ostler.text.session_title import session_title
from ostler.xnl.chat_records import read_records

CALL = ToolCall("c1", "read", {"path": "a.txt", "lines": [1, 2.5, None, True]}, raw='{"path":"a.txt"}')
MANUAL_CALL = ToolCall("h1", "bash", {"command": "ls -la"}, "person")
EVENTS = [
    SessionOpened("s1", "/work", "engine", "1"),
    InfoChanged(SessionInfo("engine", (SessionOption("model", "m1"), SessionOption("agent", "build")))),
    TurnStarted(
        "t1",
        Prompt(
            "p1",
            (TextContent("fix  the\n test " + "x" * 100), ImageContent("image/png", "AAAA"), ResourceLink("u://x")),
        ),
    ),
    PrefixBuilt('You are "Ostler".\n\tBe brief.', ()),
    MessageDone(Message("m1", (ThoughtPart("hm", "seal"), TextContent("Let me look."), CallPart(CALL)))),
    ToolCalled(CALL),
    ToolFinished(ToolResult("c1", "ok", "one\ntwo \\ </#> ünï")),
    Steered(Prompt("p2", (TextContent("hurry"), EmbeddedResource("file:///a", "whole file")))),
    MessageDone(Message("m2", ())),
    MessageDone(Message("m3", (TextContent("Done."),))),
    TodosChanged((Todo("1", "look", "completed"), Todo("2", "fix", "in_progress"))),
    TurnEnded("t1", "done"),
    ToolCalled(MANUAL_CALL),
    ToolFinished(ToolResult("h1", "ok", "total 0")),
    Compacted("What was done.", 5),
    OptionChanged("model", "m2"),
]
MESSAGES = [
    ("user", "fix  the\n test " + "x" * 100 + "\n\nu://x"),
    ("system", 'You are "Ostler".\n\tBe brief.'),
    ("assistant", "Let me look."),
    ("tool", "one\ntwo \\ </#> ünï"),
    ("user", "hurry\n\nfile:///a\nwhole file"),
    ("assistant", "Done."),
    ("user", "!ls -la"),
    ("assistant", "total 0"),
    ("system", "What was done."),
]


@pytest.fixture
def store(tmp_path):
    return JournalStore(tmp_path)


def save(store, events, start=1):
    session = store.session("p", "s1")
    journal = store.open(session)
    for seq, event in enumerate(events, start):
        journal.append(Envelope(seq, 1e9 + seq, event))
    journal.close()
    return session


def history(session):
    return (session.folder / history_xnl.HISTORY_NAME).read_text()


@pytest.mark.req("SE-2", "SE-5")
def test_messages_are_written_as_xnl_records_in_order(store):
    read = read_records(history(save(store, EVENTS)))
    assert read.errors == []
    assert [(record.role, record.fields["content"]) for record in read.records] == MESSAGES
    assert read.records[2].fields == {
        "content": "Let me look.",
        "reasoning_content": "hm",
        "toolCalls": [{"id": "c1", "name": "read", "input": CALL.arguments}],
        "rawToolCalls": [CALL.raw],
    }
    assert read.records[3].fields["toolCallId"] == "c1"


@pytest.mark.req("SE-2")
def test_messages_are_appended_immediately(store):
    session = store.session("p", "s1")
    journal = store.open(session)
    before, count = "", 0
    for seq, event in enumerate(EVENTS, 1):
        journal.append(Envelope(seq, 1.0, event))
        now = history(session)
        assert now.startswith(before)
        count += len(now) > len(before)
        assert len(read_records(now).records) == count
        before = now
    assert count == len(MESSAGES)
    journal.close()


@pytest.mark.req("SE-2")
@pytest.mark.parametrize("damage", ["gone", "torn", "one short", "five short", "another's", "empty"])
def test_missing_messages_are_added_on_opening(store, damage):
    session = save(store, EVENTS)
    path, complete = session.folder / history_xnl.HISTORY_NAME, history(session)
    starts = [
        index
        for index in range(len(complete))
        if complete.startswith("<", index) and complete[index - 1 : index] in "\n"
    ]
    match damage:
        case "gone":
            path.unlink()
        case "torn":
            path.write_text(complete[: starts[-1] + 9])
        case "one short":
            path.write_text(complete[: starts[-1]])
        case "five short":
            path.write_text(complete[: starts[-5]])
        case "another's":
            path.write_text("<user { content = 1 }>\n")
        case "empty":
            path.write_text("")
    inode = path.stat().st_ino if path.exists() else 0
    store.open(session).close()
    assert history(session) == complete
    in_place = damage == "torn" or damage.endswith("short")  # these are repaired without rewriting the file
    assert (path.stat().st_ino == inode) is in_place


@pytest.mark.req("SE-2")
def test_identical_messages_are_counted(store):
    same = [TurnStarted("t", Prompt("p", (TextContent("again"),)))] * 5
    session = save(store, same)
    complete = history(session)
    (session.folder / history_xnl.HISTORY_NAME).write_text(complete[: len(complete) * 4 // 5])
    store.open(session).close()
    assert history(session) == complete


@pytest.mark.req("SE-2")
def test_values_that_xnl_cannot_represent_become_text():
    deep = {}
    for _ in range(500):
        deep = {"x": deep}
    for arguments in ({"n": 10**400}, deep, {"a": float("nan")}, {"k \n": "\ud800"}):
        text = to_xnl(ConversationMessage(1, 1.0, "assistant", "hi", calls=(ToolCall("c", "t", arguments),)))
        (record,) = read_records(text.encode("utf-8", "replace").decode()).records
        assert record.fields["toolCalls"][0]["name"] == "t"


@pytest.mark.req("SE-1")
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_full_disk_does_not_damage_history_or_stop_the_session(store):
    session = store.session("p", "s1")
    journal = store.open(session)
    observer = journal._observers[0]
    journal.append(Envelope(1, 1.0, EVENTS[2]))
    os.dup2(os.open("/dev/full", os.O_WRONLY), observer._file)
    journal.append(Envelope(2, 1.0, EVENTS[4]))
    journal.append(Envelope(3, 1.0, EVENTS[6]))
    journal.close()
    assert len(read_records(history(session)).records) == 1
    store.open(session).close()
    assert len(read_records(history(session)).records) == 3


@pytest.mark.req("SE-1", "SE-4")
def test_meta_has_agent_model_and_compaction(store):
    meta = read_meta(save(store, EVENTS).folder, "s1")
    assert (meta.cwd, meta.agent, meta.model, meta.turns, meta.seq) == ("/work", "build", "m2", 1, len(EVENTS))
    assert (meta.compaction.times, meta.compaction.upto_seq) == (1, 5)
    assert meta.title == "fix the test " + "x" * 66 + "…"
    assert (meta.started, meta.changed) == (format_time(1e9 + 1), format_time(1e9 + len(EVENTS)))


@pytest.mark.req("SE-1")
@pytest.mark.parametrize("content", [None, b"", b"{", b'{"id":"other"}', b'{"id":"s1","seq":9999}', b"\0" * 50])
def test_meta_is_rebuilt(store, content):
    session = save(store, EVENTS)
    path = session.folder / "meta.json"
    complete = path.read_bytes()
    path.unlink() if content is None else path.write_bytes(content)
    store.open(session).close()
    assert json.loads(path.read_bytes()) == json.loads(complete)


@pytest.mark.req("SE-1")
def test_meta_of_a_folder_whose_name_is_not_utf8(store):
    session = save(store, [SessionOpened("s1", "/w\udcff", "engine", "1"), *EVENTS[1:]])
    assert read_meta(session.folder, "s1").cwd == "/w?"


@pytest.mark.req("SE-1")
def test_meta_catches_up_incrementally(store):
    session = save(store, EVENTS)
    save(store, [Renamed("A better title"), *EVENTS[2:6], TurnEnded("t2", "done")], start=len(EVENTS) + 1)
    meta = read_meta(session.folder, "s1")
    assert (meta.title, meta.named, meta.turns) == ("A better title", True, 2)
    rebuilt = SessionMeta("s1")
    for envelope in read_journal(session.folder / JOURNAL_NAME):
        rebuilt.apply(envelope)
    assert rebuilt == meta


@pytest.mark.req("SE-1", "EN-5")
def test_todos_file_follows_plan_and_revert(store):
    session = save(store, EVENTS)
    path = session.folder / "todos.json"
    written = json.loads(path.read_bytes())
    assert written["stats"] == {"total": 2, "pending": 0, "in_progress": 1, "completed": 1}
    assert written["items"][1] == {"id": "2", "content": "fix", "status": "in_progress"}
    save(store, [Reverted(4)], start=len(EVENTS) + 1)
    assert json.loads(path.read_bytes())["items"] == []


@pytest.mark.req("SE-4", "EN-15")
def test_reverted_prompt_does_not_name_the_session(store):
    def started(text):
        return TurnStarted("t", Prompt("p", (TextContent(text),)))

    def title(*events, start):
        return read_meta(save(store, events, start=start).folder, "s1").title

    ended = TurnEnded("t", "failed")
    assert title(SessionOpened("s1", "/w", "engine", "0"), started("refused"), Reverted(1), ended, start=1) == ""
    assert title(started("a good one"), ended, start=5) == "a good one"
    assert title(Reverted(4), start=7) == ""
    assert title(Reverted(6), start=8) == "a good one", "the revert was itself reverted"


def test_times_out_of_range_are_empty():
    assert [format_time(time) for time in (1e30, float("inf"), float("nan"), -1e30)] == ["", "", "", ""]
    assert session_title("  a\n\tb  ") == "a b"


@pytest.mark.req("SE-5")
def test_manual_call_announced_twice_is_one_message():
    records = [Envelope(n, 1.0, event) for n, event in enumerate([ToolCalled(MANUAL_CALL), ToolCalled(MANUAL_CALL)], 1)]
    assert [message.text for message in read_conversation(records)] == ["!ls -la"]
