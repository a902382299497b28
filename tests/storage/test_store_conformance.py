"""What every `Store` does, whether it uses files, memory or a database."""

import threading

import pytest
from tests.storage.store_cases import CASES, PROJECT, ROOT, append_all, events_of_a_turn, save

from ostler.backends.scripted import ScriptedBackend
from ostler.core.errors import JournalError, UsageError
from ostler.core.events import (
    Envelope,
    Notice,
    Queued,
    SessionOpened,
    ToolFinished,
    TurnStarted,
    UnknownEvent,
)
from ostler.core.prompt import Prompt, TextContent
from ostler.core.sessions import SessionQuery
from ostler.core.tools import ToolResult
from ostler.testing.session_fixture import open_test_session, run_turn
from ostler.workspace.local_workspace import LocalWorkspace

pytestmark = pytest.mark.req("SV-8", "SE-1")


@pytest.fixture(params=CASES)
def any_case(request, tmp_path, monkeypatch):
    case = CASES[request.param](tmp_path, monkeypatch)
    yield case
    case.close()


@pytest.fixture(params=[name for name, case in CASES.items() if case.keeps])
def case(request, tmp_path, monkeypatch):
    case = CASES[request.param](tmp_path, monkeypatch)
    yield case
    case.close()


# -- journals ------------------------------------------------------------------------------------------------------


def test_records_have_numbers_types_and_results(any_case):
    journal = any_case.connect().open(PROJECT)
    result = ToolResult("call-1", "ok", "hello")
    append_all(journal, [Notice("info", "one"), ToolFinished(result), UnknownEvent("later", {"a": 1})])
    records = journal.records()
    assert len(records) == 3
    assert [records.type_at(index) for index in range(3)] == ["notice", "tool_finished", "later"]
    assert list(records.indexes_of({"later"})) == [2]
    assert [envelope.seq for envelope in records] == [1, 2, 3]
    assert records[-1].event == UnknownEvent("later", {"a": 1})
    assert records.index_after(1) == 1
    assert (records.result("call-1"), records.result_seq("call-1")) == (result, 2)
    assert (records.result("none"), records.result_seq("none")) == (None, None)
    with pytest.raises(IndexError):
        records[3]
    journal.close()


def test_new_sessions_get_different_ids(any_case):
    store = any_case.connect()
    first, second = store.open(PROJECT), store.open(PROJECT)
    assert first.session_id != second.session_id
    assert len(first.records()) == 0
    first.close()
    second.close()


def test_synced_records_are_read_by_another_process(case):
    journal = case.connect().open(PROJECT, "s1")
    append_all(journal, [SessionOpened("s1", ROOT, "engine", "1"), *events_of_a_turn("ünïcode \0 \u2028")])
    written = list(journal.records())
    journal.close()
    again = case.connect().open(PROJECT, "s1")
    assert list(again.records()) == written
    assert list(again.damage) == []
    again.close()


def test_one_process_at_a_time_has_a_session_open(case):
    journal = case.connect().open(PROJECT, "s1")
    append_all(journal, [Notice("info", "one")])
    for store in (case.connect(), case.connect()):
        with pytest.raises(JournalError) as caught:
            store.open(PROJECT, "s1")
        assert caught.value.fault.code == "session_busy"
    journal.close()
    again = case.connect().open(PROJECT, "s1")
    assert len(again.records()) == 1
    again.close()


def test_closed_journal_cannot_be_written(case):
    journal = case.connect().open(PROJECT, "s1")
    append_all(journal, [Notice("info", "one")])
    journal.close()
    journal.close()
    for action in (lambda: journal.append(Envelope(2, 0.0, Notice("info", "two"))), journal.sync):
        with pytest.raises(JournalError) as caught:
            action()
        assert caught.value.fault.code == "session_closed"


def test_dropped_new_journal_is_gone_and_an_old_one_stays(case):
    store = case.connect()
    journal = store.open(PROJECT, "s1")
    append_all(journal, [SessionOpened("s1", ROOT, "engine", "1")])
    journal.drop()
    assert list(store.list(SessionQuery())) == []
    save(store, "s2")
    store.open(PROJECT, "s2").drop()
    assert [found.id for found in store.list(SessionQuery())] == ["s2"]


def test_sync_works_in_any_thread(any_case):
    journal = any_case.connect().open(PROJECT)
    failures = []

    def sync():
        try:
            journal.sync()
        except BaseException as error:
            failures.append(error)

    for seq in range(1, 200):
        journal.append(Envelope(seq, 0.0, Notice("info", "x" * seq)))
        if seq % 20 == 0:
            threads = [threading.Thread(target=sync) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    journal.close()
    assert failures == []
    assert [envelope.seq for envelope in journal.records()] == list(range(1, 200))


def test_huge_record_is_refused_and_the_journal_goes_on(case):
    journal = case.connect().open(PROJECT, "s1")
    append_all(journal, [Notice("info", "one")])
    with pytest.raises(JournalError, match="too large"):
        journal.append(Envelope(2, 0.0, Notice("info", "x" * (65 * 1024 * 1024))))
    append_all(journal, [Notice("info", "two")])
    journal.close()
    assert [envelope.event.text for envelope in journal.records()] == ["one", "two"]


async def test_session_runs_closes_and_resumes(any_case, tmp_path):
    store = any_case.connect()

    async def act(context, prompt):
        context.emit(Notice("info", "acted"))

    workspace = LocalWorkspace(str(tmp_path))
    session = await open_test_session(ScriptedBackend([act]), [], workspace, journal=store.open(PROJECT))
    _, ended = await run_turn(session, "go")
    assert ended.reason == "done"
    await session.aclose()
    if any_case.keeps:
        journal = any_case.connect().open(PROJECT, session.id)
        again = await open_test_session(ScriptedBackend([act]), [], workspace, journal=journal)
        _, ended = await run_turn(again, "go on")
        assert ended.reason == "done"
        await again.aclose()


# -- the list of sessions ------------------------------------------------------------------------------------------


def test_list_is_newest_first_and_limited(case):
    store = case.connect()
    for number in (1, 2, 3):
        save(store, f"s{number}", time=1e9 + 100 * number)
    assert [found.id for found in store.list(SessionQuery())] == ["s3", "s2", "s1"]
    assert [found.id for found in store.list(SessionQuery(limit=2))] == ["s3", "s2"]
    newest = store.list(SessionQuery(limit=1))[0]
    assert (newest.cwd, newest.title, newest.turns) == (ROOT, "find the parser", 1)
    assert newest.changed > newest.started > ""


def test_list_of_a_folder_and_without_child_sessions(case):
    store = case.connect()
    save(store, "s1")
    save(store, "other", project="another-project", root="/elsewhere")
    child = store.open(PROJECT, "child")
    append_all(child, [SessionOpened("child", ROOT, "engine", "1", "s1"), *events_of_a_turn()])
    child.close()
    assert [found.id for found in store.list(SessionQuery(ROOT))] == ["s1"]
    assert {found.id for found in store.list(SessionQuery())} == {"s1", "other"}


def test_search_finds_words_prefixes_and_titles(case):
    store = case.connect()
    save(store, "s1")
    save(store, "s2", events_of_a_turn("rename the lexer", "Done, 漢字 too."))
    store.rename("s2", "Grammar work")

    def found(text):
        return [summary.id for summary in store.list(SessionQuery(text=text))]

    assert found("parser") == ["s1"]
    assert found("renam lex") == ["s2"]
    assert found("grammar") == ["s2"]
    assert found("漢字") == ["s2"]
    assert found('"parser the"') == found("nothing") == found('" * ( AND') == []


@pytest.mark.parametrize("ref", ["", "nope", "../../etc", "s%", "x" * 500])
def test_find_refuses_unknown_ids(case, ref):
    store = case.connect()
    save(store, "s1")
    with pytest.raises(UsageError, match="not found"):
        store.find(PROJECT, ref)


def test_find_by_id_part_and_last(case):
    store = case.connect()
    with pytest.raises(UsageError, match="no session in this workspace"):
        store.find(PROJECT, "last")
    save(store, "2026-aa", time=1e9)
    save(store, "2026-bb", time=2e9)
    empty = store.open(PROJECT, "2026-cc")
    append_all(empty, [SessionOpened("2026-cc", ROOT, "engine", "1")], time=3e9)
    empty.close()
    save(store, "2026-dd", project="another-project", root="/elsewhere")
    assert store.find(PROJECT, "2026-aa") == "2026-aa"
    assert store.find(PROJECT, "bb") == store.find(PROJECT, "last") == "2026-bb"
    with pytest.raises(UsageError, match="3 session ids contain"):
        store.find(PROJECT, "2026")
    with pytest.raises(UsageError, match="belongs to another workspace"):
        store.find(PROJECT, "dd")


@pytest.mark.parametrize("hostile", ["..", "../x", "a/b", ".hidden", "-x", "a\0b", "x" * 101])
def test_invalid_ids_are_not_opened(case, hostile):
    with pytest.raises(UsageError, match="invalid session id"):
        case.connect().open(PROJECT, hostile)


def test_backend_of_a_session(case):
    store = case.connect()
    journal = store.open(PROJECT, "s1")
    append_all(journal, [SessionOpened("s1", ROOT, "acp:other", "1")])
    journal.close()
    assert store.backend("s1") == "acp:other"
    with pytest.raises(UsageError, match="not found"):
        store.backend("s2")


# -- fork, rename, delete ------------------------------------------------------------------------------------------


def test_fork_copies_up_to_a_record(case):
    store = case.connect()
    save(store, "s1", [*events_of_a_turn(), Queued(("later",)), *events_of_a_turn("more", number=2)])
    whole, part = store.fork("s1"), store.fork("s1", 4)
    for fork_id, numbers in ((whole, [1, 2, 3, 4, 6, 7, 8]), (part, [1, 2, 3, 4])):
        journal = store.open(PROJECT, fork_id)
        assert [envelope.seq for envelope in journal.records()] == numbers  # queued prompts stay with the original
        append_all(journal, [Notice("info", "goes on")])
        journal.close()
    assert len({whole, part, "s1"}) == 3
    assert store.list(SessionQuery(text="more"))[0].title == "find the parser"
    for seq in (-1, 9, 999):
        with pytest.raises(UsageError, match="has no record"):
            store.fork("s1", seq)
    with pytest.raises(UsageError, match="not found"):
        store.fork("s2")
    assert len(store.list(SessionQuery())) == 3


def test_open_session_can_be_forked_but_not_renamed_or_deleted(case):
    store = case.connect()
    save(store, "s1")
    journal = store.open(PROJECT, "s1")
    assert store.fork("s1") != "s1"
    for action in (lambda: store.rename("s1", "x"), lambda: store.delete("s1")):
        with pytest.raises(JournalError, match="open in another process"):
            action()
    append_all(journal, [Notice("info", "still writable")])
    journal.close()


def test_rename(case):
    store = case.connect()
    save(store, "s1")
    store.rename("s1", "A better name")
    assert case.connect().list(SessionQuery())[0].title == "A better name"
    with pytest.raises(UsageError, match="not found"):
        store.rename("s2", "x")


def test_deleted_session_is_gone(case):
    store = case.connect()
    save(store, "s1")
    save(store, "s2", events_of_a_turn("second"))
    store.delete("s1")
    assert [found.id for found in store.list(SessionQuery())] == ["s2"]
    assert list(store.list(SessionQuery(text="find the"))) == []
    for action in (lambda: store.delete("s1"), lambda: store.delete("s"), lambda: store.find(PROJECT, "s1")):
        with pytest.raises(UsageError, match="not found"):
            action()


def test_sessions_that_are_not_saved_cannot_be_used_again(tmp_path, monkeypatch):
    store = CASES["ephemeral"](tmp_path, monkeypatch).connect()
    session_id = save(store)
    assert list(store.list(SessionQuery())) == []
    for action in (
        lambda: store.find(PROJECT, session_id),
        lambda: store.fork(session_id),
        lambda: store.rename(session_id, "x"),
        lambda: store.delete(session_id),
    ):
        with pytest.raises(UsageError):
            action()


def test_prompt_that_was_never_answered_is_found_too(case):
    store = case.connect()
    save(store, "s1", [TurnStarted("t", Prompt("p", (TextContent("unanswered"),)))])
    assert [found.id for found in store.list(SessionQuery(text="unanswered"))] == ["s1"]
