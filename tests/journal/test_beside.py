"""What is made beside the journal while it grows: history.xnl, meta.json, todos.json; all of it can be made again."""

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
from ostler.journal.session_meta import SessionMeta, format_time, read_meta, title_of
from ostler.xnl.chat_records import read_records

CALL = ToolCall("c1", "read", {"path": "a.txt", "lines": [1, 2.5, None, True]}, raw='{"path":"a.txt"}')
BY_HAND = ToolCall("h1", "bash", {"command": "ls -la"}, "person")
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
    TodosChanged((Todo("1", "look", "completed"), Todo("2", "mend", "in_progress"))),
    TurnEnded("t1", "done"),
    ToolCalled(BY_HAND),
    ToolFinished(ToolResult("h1", "ok", "total 0")),
    Compacted("What was done.", 5),
    OptionChanged("model", "m2"),
]
SAID = [
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


def keep(store, events, start=1):
    place = store.session("p", "s1")
    journal = store.open(place)
    for seq, event in enumerate(events, start):
        journal.append(Envelope(seq, 1e9 + seq, event))
    journal.close()
    return place


def history(place):
    return (place.folder / history_xnl.HISTORY_NAME).read_text()


@pytest.mark.req("SE-2", "SE-5")
def test_every_message_is_a_record_of_the_notation_in_order(store):
    read = read_records(history(keep(store, EVENTS)))
    assert read.errors == []
    assert [(one.role, one.fields["content"]) for one in read.records] == SAID
    assert read.records[2].fields == {
        "content": "Let me look.",
        "reasoning_content": "hm",
        "toolCalls": [{"id": "c1", "name": "read", "input": CALL.arguments}],
        "rawToolCalls": [CALL.raw],
    }
    assert read.records[3].fields["toolCallId"] == "c1"


@pytest.mark.req("SE-2")
def test_a_message_is_there_the_moment_it_exists_and_earlier_bytes_never_change(store):
    place = store.session("p", "s1")
    journal = store.open(place)
    before, told = "", 0
    for seq, event in enumerate(EVENTS, 1):
        journal.append(Envelope(seq, 1.0, event))
        now = history(place)
        assert now.startswith(before)
        told += len(now) > len(before)
        assert len(read_records(now).records) == told
        before = now
    assert told == len(SAID)
    journal.close()


@pytest.mark.req("SE-2")
@pytest.mark.parametrize("harm", ["gone", "torn", "one short", "five short", "another's", "empty"])
def test_what_a_crash_left_out_is_made_up_for(store, harm):
    place = keep(store, EVENTS)
    path, whole = place.folder / history_xnl.HISTORY_NAME, history(place)
    starts = [index for index in range(len(whole)) if whole.startswith("<", index) and whole[index - 1 : index] in "\n"]
    match harm:
        case "gone":
            path.unlink()
        case "torn":
            path.write_text(whole[: starts[-1] + 9])
        case "one short":
            path.write_text(whole[: starts[-1]])
        case "five short":
            path.write_text(whole[: starts[-5]])
        case "another's":
            path.write_text("<user { content = 1 }>\n")
        case "empty":
            path.write_text("")
    inode = path.stat().st_ino if path.exists() else 0
    store.open(place).close()
    assert history(place) == whole
    in_place = harm == "torn" or harm.endswith("short")  # then it is not written anew
    assert (path.stat().st_ino == inode) is in_place


@pytest.mark.req("SE-2")
def test_twins_are_told_apart_when_one_is_missing(store):
    same = [TurnStarted("t", Prompt("p", (TextContent("again"),)))] * 5
    place = keep(store, same)
    whole = history(place)
    (place.folder / history_xnl.HISTORY_NAME).write_text(whole[: len(whole) * 4 // 5])
    store.open(place).close()
    assert history(place) == whole


@pytest.mark.req("SE-2")
def test_what_the_notation_cannot_hold_is_told_in_words():
    deep = {}
    for _ in range(500):
        deep = {"x": deep}
    for arguments in ({"n": 10**400}, deep, {"a": float("nan")}, {"k \n": "\ud800"}):
        text = to_xnl(ConversationMessage(1, 1.0, "assistant", "hi", calls=(ToolCall("c", "t", arguments),)))
        (one,) = read_records(text.encode("utf-8", "replace").decode()).records
        assert one.fields["toolCalls"][0]["name"] == "t"


@pytest.mark.req("SE-1")
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_full_disk_leaves_the_history_whole_and_stops_nobody(store):
    place = store.session("p", "s1")
    journal = store.open(place)
    follower = journal._observers[0]
    journal.append(Envelope(1, 1.0, EVENTS[2]))
    os.dup2(os.open("/dev/full", os.O_WRONLY), follower._file)
    journal.append(Envelope(2, 1.0, EVENTS[4]))
    journal.append(Envelope(3, 1.0, EVENTS[6]))
    journal.close()
    assert len(read_records(history(place)).records) == 1
    store.open(place).close()
    assert len(read_records(history(place)).records) == 3


@pytest.mark.req("SE-1", "SE-4")
def test_the_summary_names_agent_model_and_compaction(store):
    meta = read_meta(keep(store, EVENTS).folder, "s1")
    assert (meta.cwd, meta.agent, meta.model, meta.turns, meta.seq) == ("/work", "build", "m2", 1, len(EVENTS))
    assert (meta.compaction.times, meta.compaction.upto_seq) == (1, 5)
    assert meta.title == "fix the test " + "x" * 66 + "…"
    assert (meta.started, meta.changed) == (format_time(1e9 + 1), format_time(1e9 + len(EVENTS)))


@pytest.mark.req("SE-1")
@pytest.mark.parametrize("harm", [None, b"", b"{", b'{"id":"other"}', b'{"id":"s1","seq":9999}', b"\0" * 50])
def test_the_summary_is_made_again(store, harm):
    place = keep(store, EVENTS)
    path = place.folder / "meta.json"
    whole = path.read_bytes()
    path.unlink() if harm is None else path.write_bytes(harm)
    store.open(place).close()
    assert json.loads(path.read_bytes()) == json.loads(whole)


@pytest.mark.req("SE-1")
def test_the_summary_catches_up_from_where_it_was(store):
    place = keep(store, EVENTS)
    keep(store, [Renamed("A better title"), *EVENTS[2:6], TurnEnded("t2", "done")], start=len(EVENTS) + 1)
    meta = read_meta(place.folder, "s1")
    assert (meta.title, meta.named, meta.turns) == ("A better title", True, 2)
    anew = SessionMeta("s1")
    for envelope in read_journal(place.folder / JOURNAL_NAME):
        anew.apply(envelope)
    assert anew == meta


@pytest.mark.req("SE-1", "EN-5")
def test_the_plan_is_a_file_and_a_revert_takes_it_back(store):
    place = keep(store, EVENTS)
    path = place.folder / "todos.json"
    told = json.loads(path.read_bytes())
    assert told["stats"] == {"total": 2, "pending": 0, "in_progress": 1, "completed": 1}
    assert told["items"][1] == {"id": "2", "content": "mend", "status": "in_progress"}
    keep(store, [Reverted(4)], start=len(EVENTS) + 1)
    assert json.loads(path.read_bytes())["items"] == []


@pytest.mark.req("SE-4", "EN-15")
def test_a_prompt_that_was_taken_back_names_nothing(store):
    def prompted(words):
        return TurnStarted("t", Prompt("p", (TextContent(words),)))

    def title(*events, start):
        return read_meta(keep(store, events, start=start).folder, "s1").title

    ended = TurnEnded("t", "failed")
    assert title(SessionOpened("s1", "/w", "engine", "0"), prompted("refused"), Reverted(1), ended, start=1) == ""
    assert title(prompted("a good one"), ended, start=5) == "a good one"
    assert title(Reverted(4), start=7) == ""
    assert title(Reverted(6), start=8) == "a good one", "it was taken back by mistake"


def test_times_out_of_this_world_have_no_words():
    assert [format_time(time) for time in (1e30, float("inf"), float("nan"), -1e30)] == ["", "", "", ""]
    assert title_of("  a\n\tb  ") == "a b"


@pytest.mark.req("SE-5")
def test_a_call_by_hand_is_told_once_however_often_it_is_announced():
    records = [Envelope(n, 1.0, event) for n, event in enumerate([ToolCalled(BY_HAND), ToolCalled(BY_HAND)], 1)]
    assert [said.text for said in read_conversation(records)] == ["!ls -la"]
