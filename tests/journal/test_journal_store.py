"""Sessions on disk: finding, deleting, forking, cleanup, and reports of missing records."""

import os

import pytest
from tests.journal.samples import save_session, turn

from ostler.backends.scripted import ScriptedBackend
from ostler.core.errors import JournalError, UsageError
from ostler.core.events import Queued, SessionOpened, TurnEnded
from ostler.journal.file_journal import FileJournal, read_journal
from ostler.journal.fork import fork
from ostler.journal.journal_store import JournalStore
from ostler.journal.session_meta import read_meta
from ostler.session.state import state_from_records
from ostler.storage.cleanup import clean_cache, delete_expired
from ostler.testing.session_fixture import open_test_session
from ostler.workspace.local_workspace import LocalWorkspace

DAY = 86400


@pytest.fixture
def store(tmp_path):
    return JournalStore(tmp_path / "projects")


@pytest.mark.req("SE-3")
def test_find_by_id_part_of_id_or_last(store):
    first, second = save_session(store, "2026-01-aa"), save_session(store, "2026-02-bb")
    elsewhere = save_session(store, "2026-03-aa", project="q")
    os.utime(first.journal_path, (2e9, 2e9))
    assert store.find("2026-01-aa", "p") == first
    assert store.find("bb", "p") == second
    assert store.find("aa", "p") == first  # sessions of the project come first
    assert store.find("03", "p") == elsewhere
    assert store.find("last", "p") == first


@pytest.mark.req("SE-3")
@pytest.mark.parametrize(
    ("session_ref", "message"),
    [
        ("2026", "2 session ids contain"),
        ("nope", "session 'nope' not found"),
        ("", "session '' not found"),
        ("../../etc", "not found"),
    ],
)
def test_find_reports_missing_and_ambiguous_ids(store, session_ref, message):
    save_session(store, "2026-01-aa"), save_session(store, "2026-02-bb")
    with pytest.raises(UsageError, match=message):
        store.find(session_ref, "p")


@pytest.mark.parametrize("hostile", ["..", "../x", "a/b", "", ".hidden", "-x", "a\0b", "x" * 101])
def test_invalid_ids_are_rejected(store, hostile):
    with pytest.raises(UsageError, match="invalid session id"):
        store.session("p", hostile)


def test_last_ignores_child_sessions(store):
    with pytest.raises(UsageError, match="no session in this workspace yet"):
        store.find("last", "p")
    parent = save_session(store, "parent")
    child = save_session(store, "child", [SessionOpened("child", "/work", "engine", "1", "parent")])
    os.utime(child.journal_path, (2e9, 2e9))
    assert store.latest("p") == parent


@pytest.mark.req("SE-3")
def test_delete_refuses_open_sessions(store):
    session = save_session(store)
    journal = FileJournal(session.folder, "s1")
    with pytest.raises(JournalError, match="open in another process"):
        store.delete(session)
    journal.close()
    store.delete(session)
    assert list(store.sessions()) == []
    assert list(session.folder.parent.iterdir()) == []


@pytest.mark.req("SE-3")
@pytest.mark.parametrize("upto", [0, 2, 4, 6, 11])
async def test_fork_copies_up_to_a_record_and_can_be_opened(store, upto, tmp_path):
    source = save_session(store)
    before = source.journal_path.read_bytes()
    forked = fork(store, source, upto)
    assert source.journal_path.read_bytes() == before
    numbers = [envelope.seq for envelope in read_journal(forked.journal_path)]
    assert numbers == [seq for seq in range(1, (upto or 11) + 1) if seq not in (7, 9)]  # rules and usage are not copied
    meta = read_meta(forked.folder, forked.id)
    assert (meta.forked_from, meta.parent_id, meta.cwd) == ("s1", "", "/work")
    session = await open_test_session(
        ScriptedBackend([]), [], LocalWorkspace(str(tmp_path)), journal=store.open(forked)
    )
    assert (session.state.turn, session.state.rules, session.state.calls_without_result()) == (None, [], [])
    await session.aclose()
    assert read_meta(forked.folder, forked.id).forked_from == "s1"


@pytest.mark.req("SE-3")
def test_queued_prompts_are_not_forked(store):
    source = save_session(store, "s1", [TurnEnded("t", "done"), Queued(("say this",))])
    assert state_from_records(read_journal(source.journal_path)).queued == ("say this",)
    assert state_from_records(read_journal(fork(store, source).journal_path)).queued == ()


@pytest.mark.parametrize("seq", [-1, 12, 999])
def test_fork_at_missing_record_is_refused(store, seq):
    source = save_session(store)
    with pytest.raises(UsageError, match="has no record"):
        fork(store, source, seq)
    assert len(list(store.sessions())) == 1


def test_open_session_can_be_forked(store):
    session = save_session(store)
    journal = store.open(session)
    assert fork(store, session).id != "s1"
    journal.close()


@pytest.mark.req("SE-1")
@pytest.mark.parametrize("days", [-1 / 24, 0, 400, 40_000])
def test_without_limits_nothing_is_deleted(store, days):
    session = save_session(store)
    assert delete_expired(store, None, None, session.journal_path.stat().st_mtime + days * DAY) == []
    assert session.journal_path.exists()


@pytest.mark.req("SE-4")
def test_expired_then_oldest_sessions_are_deleted_except_open_ones(store):
    sessions = [save_session(store, f"s{number}", turn(output="x" * 400_000)) for number in range(6)]
    for age, session in enumerate(sessions):
        os.utime(session.journal_path, (1e9 - age * DAY, 1e9 - age * DAY))
    journal = store.open(sessions[5])
    os.utime(sessions[5].journal_path, (0, 0))
    assert delete_expired(store, 3, None, 1e9, keep_id="s4") == []
    assert delete_expired(store, 3, None, 1e9) == ["s4"]
    assert delete_expired(store, None, 1, 1e9) == ["s3", "s2"]  # s5 is older, but open
    journal.close()
    assert delete_expired(store, None, 1, 1e9) == ["s5"]
    assert {session.id for session in store.sessions()} == {"s0", "s1"}


@pytest.mark.req("SE-4")
def test_cache_is_cleaned_by_age_then_size(tmp_path):
    (tmp_path / "deep").mkdir()
    for number in range(5):
        path = tmp_path / "deep" / f"f{number}"
        path.write_bytes(b"x" * 400_000)
        os.utime(path, (1e9 - number * 3600, 1e9 - number * 3600))
    (tmp_path / "outside").symlink_to("/etc/hostname")
    assert clean_cache(tmp_path, 3, 100, 1e9) == 1
    assert clean_cache(tmp_path, 3, 1, 1e9) == 2
    assert sorted(path.name for path in tmp_path.rglob("f*")) == ["f0", "f1"]
    assert clean_cache(tmp_path / "missing", 3, 1, 1e9) == 0


def test_fork_of_an_unfinished_turn_does_not_end_it(store):
    source = save_session(store)
    forked = fork(store, source, 2)
    assert not any(isinstance(envelope.event, TurnEnded) for envelope in read_journal(forked.journal_path))


@pytest.mark.req("SE-1")
@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda lines: lines, ""),
        (lambda lines: lines[:-2], "2 records are missing"),
        (lambda lines: lines[:2] + lines[3:], "1 record is missing"),
        (lambda lines: [*lines[:2], b"\0\n", *lines[3:]], "skipped 1 damaged record"),
        (lambda lines: [*lines[:-1], lines[-1][:20]], "incomplete"),
    ],
    ids=["intact", "end", "middle", "damaged", "incomplete"],
)
def test_missing_records_are_reported(store, damage, message):
    session = save_session(store, "s")
    session.journal_path.write_bytes(b"".join(damage(session.journal_path.read_bytes().splitlines(keepends=True))))
    journal = store.open(session)
    assert [message in sentence for sentence in journal.damage] == ([True] if message else [])
    journal.close()
    copy = store.open(fork(store, session))
    assert not copy.damage
    copy.close()
