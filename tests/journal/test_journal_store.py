"""Sessions on disk: found by their ids and times, deleted on request alone, forked at any record."""

import os

import pytest
from tests.journal.samples import keep, turn

from ostler.backends.scripted import ScriptedBackend
from ostler.core.errors import JournalError, UsageError
from ostler.core.events import Queued, SessionOpened, TurnEnded
from ostler.journal.cleanup import clean_cache, delete_expired
from ostler.journal.file_journal import FileJournal, read_journal
from ostler.journal.fork import fork
from ostler.journal.journal_store import JournalStore
from ostler.journal.session_meta import read_meta
from ostler.session.state import state_from_records
from ostler.testing.session_fixture import open_test_session
from ostler.workspace.local_workspace import LocalWorkspace

DAY = 86400


@pytest.fixture
def store(tmp_path):
    return JournalStore(tmp_path / "projects")


@pytest.mark.req("SE-3")
def test_a_session_is_found_by_its_id_a_part_of_it_or_as_the_last(store):
    first, second = keep(store, "2026-01-aa"), keep(store, "2026-02-bb")
    elsewhere = keep(store, "2026-03-aa", project="q")
    os.utime(first.journal_path, (2e9, 2e9))
    assert store.find("2026-01-aa", "p") == first
    assert store.find("bb", "p") == second
    assert store.find("aa", "p") == first  # the project's own come first
    assert store.find("03", "p") == elsewhere
    assert store.find("last", "p") == first


@pytest.mark.req("SE-3")
@pytest.mark.parametrize(
    ("wanted", "told"),
    [("2026", "2 sessions have"), ("nope", "no session 'nope'"), ("", "no session ''"), ("../../etc", "no session")],
)
def test_what_is_not_one_session_is_told(store, wanted, told):
    keep(store, "2026-01-aa"), keep(store, "2026-02-bb")
    with pytest.raises(UsageError, match=told):
        store.find(wanted, "p")


@pytest.mark.parametrize("hostile", ["..", "../x", "a/b", "", ".hidden", "-x", "a\0b", "x" * 101])
def test_an_id_cannot_lead_elsewhere(store, hostile):
    with pytest.raises(UsageError, match="cannot be the id"):
        store.session("p", hostile)


def test_there_is_no_last_session_before_the_first_and_a_childs_does_not_count(store):
    with pytest.raises(UsageError, match="no session in this workspace yet"):
        store.find("last", "p")
    parent = keep(store, "parent")
    child = keep(store, "child", [SessionOpened("child", "/work", "engine", "1", "parent")])
    os.utime(child.journal_path, (2e9, 2e9))
    assert store.latest("p") == parent


@pytest.mark.req("SE-3")
def test_deleted_is_gone_and_an_open_one_is_not_deleted(store):
    place = keep(store)
    journal = FileJournal(place.folder, "s1")
    with pytest.raises(JournalError, match="open in another process"):
        store.delete(place)
    journal.close()
    store.delete(place)
    assert list(store.sessions()) == []
    assert list(place.folder.parent.iterdir()) == []


@pytest.mark.req("SE-3")
@pytest.mark.parametrize("at", [0, 2, 4, 6, 11])
async def test_a_fork_has_everything_up_to_a_message_and_goes_on(store, at, tmp_path):
    source = keep(store)
    before = source.journal_path.read_bytes()
    forked = fork(store, source, at)
    assert source.journal_path.read_bytes() == before
    kinds = [envelope.seq for envelope in read_journal(forked.journal_path)]
    assert kinds == [seq for seq in range(1, (at or 11) + 1) if seq not in (7, 9)]  # rules and spending stay behind
    meta = read_meta(forked.folder, forked.id)
    assert (meta.forked_from, meta.parent_id, meta.cwd) == ("s1", "", "/work")
    session = await open_test_session(
        ScriptedBackend([]), [], LocalWorkspace(str(tmp_path)), journal=store.open(forked)
    )
    assert (session.state.turn, session.state.rules, session.state.calls_without_result()) == (None, [], [])
    await session.aclose()
    assert read_meta(forked.folder, forked.id).forked_from == "s1"


@pytest.mark.req("SE-3")
def test_what_waits_to_be_sent_in_a_session_does_not_wait_in_its_fork(store):
    source = keep(store, "s1", [TurnEnded("t", "done"), Queued(("say this",))])
    assert state_from_records(read_journal(source.journal_path)).queued == ("say this",)
    assert state_from_records(read_journal(fork(store, source).journal_path)).queued == ()


@pytest.mark.parametrize("at", [-1, 12, 999])
def test_a_fork_at_no_record_is_refused_and_leaves_nothing(store, at):
    source = keep(store)
    with pytest.raises(UsageError, match="has no record"):
        fork(store, source, at)
    assert len(list(store.sessions())) == 1


def test_a_session_can_be_forked_while_another_process_has_it(store):
    place = keep(store)
    journal = store.open(place)
    assert fork(store, place).id != "s1"
    journal.close()


@pytest.mark.req("SE-1")
@pytest.mark.parametrize("days", [-1 / 24, 0, 400, 40_000])
def test_without_a_bound_nothing_is_deleted_whatever_the_clock_says(store, days):
    place = keep(store)
    assert delete_expired(store, None, None, place.journal_path.stat().st_mtime + days * DAY) == []
    assert place.journal_path.exists()


@pytest.mark.req("SE-4")
def test_with_a_bound_old_and_then_large_sessions_go_but_never_one_that_is_open(store):
    places = [keep(store, f"s{number}", turn(output="x" * 400_000)) for number in range(6)]
    for age, place in enumerate(places):
        os.utime(place.journal_path, (1e9 - age * DAY, 1e9 - age * DAY))
    held = store.open(places[5])
    os.utime(places[5].journal_path, (0, 0))
    assert delete_expired(store, 3, None, 1e9, keep_id="s4") == []
    assert delete_expired(store, 3, None, 1e9) == ["s4"]
    assert delete_expired(store, None, 1, 1e9) == ["s3", "s2"]  # s5 would have been first, and is open
    held.close()
    assert delete_expired(store, None, 1, 1e9) == ["s5"]
    assert {place.id for place in store.sessions()} == {"s0", "s1"}


@pytest.mark.req("SE-4")
def test_the_cache_goes_by_age_and_then_by_size(tmp_path):
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


def test_a_turn_that_was_open_in_the_fork_is_closed_by_events(store):
    source = keep(store)
    forked = fork(store, source, 2)
    assert not any(isinstance(envelope.event, TurnEnded) for envelope in read_journal(forked.journal_path))


@pytest.mark.req("SE-1")
@pytest.mark.parametrize(
    ("harm", "told"),
    [
        (lambda lines: lines, ""),
        (lambda lines: lines[:-2], "2 records are missing"),
        (lambda lines: lines[:2] + lines[3:], "1 record is missing"),
        (lambda lines: [*lines[:2], b"\0\n", *lines[3:]], "skipped 1 damaged record"),
        (lambda lines: [*lines[:-1], lines[-1][:20]], "torn"),
    ],
    ids=["whole", "end", "middle", "damaged", "torn"],
)
def test_records_of_which_nothing_is_left_are_told_and_those_alone(store, harm, told):
    place = keep(store, "s")
    place.journal_path.write_bytes(b"".join(harm(place.journal_path.read_bytes().splitlines(keepends=True))))
    journal = store.open(place)
    assert [told in sentence for sentence in journal.damage] == ([True] if told else [])
    journal.close()
    copy = store.open(fork(store, place))
    assert not copy.damage
    copy.close()
