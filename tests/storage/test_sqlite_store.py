"""The SQLite database: kills, full disks, damage and versions."""

import random
import signal
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from tests.storage.store_cases import PROJECT, SqliteCase, append_all, events_of_a_turn, save

from ostler.core.errors import JournalError, UsageError
from ostler.core.events import Envelope, Notice, UnknownEvent
from ostler.journal.session_meta import SessionMeta
from ostler.storage.sqlite_database import SqliteDatabase
from ostler.storage.sqlite_schema import MIGRATIONS
from ostler.storage.sqlite_store import SqliteSessions

pytestmark = pytest.mark.req("SV-8")
TARGET = Path(__file__).with_name("sqlite_kill_target.py")


@pytest.fixture
def case(tmp_path, monkeypatch):
    case = SqliteCase(tmp_path, monkeypatch)
    yield case
    case.close()


# -- kills and full disks ------------------------------------------------------------------------------------------


def kill_after(path, lines):
    """Run the target, kill it after some synced records, and return the last synced number of each session."""
    command = [sys.executable, "-P", str(TARGET), str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        synced = {}
        for _ in range(lines):
            name, seq = process.stdout.readline().split()
            synced[name] = int(seq)
        process.send_signal(signal.SIGKILL)
        rest = process.stdout.read()
    for line in rest.splitlines():
        if rest.endswith("\n") or line != rest.splitlines()[-1]:
            name, seq = line.split()
            synced[name] = int(seq)
    return synced


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.sampled(every=3)
def test_killed_process_loses_nothing_that_was_synced(case, seed):
    rng, synced = random.Random(seed), {}
    for _ in range(2):
        synced |= kill_after(case.path, rng.choice([1, 5, 30]))
        for name, last in synced.items():  # the lock of the killed process does not stop the next one
            journal = case.connect().open("p", name)
            seqs = [envelope.seq for envelope in journal.records()]
            assert seqs == list(range(1, len(seqs) + 1))
            assert len(seqs) >= last
            assert not journal.damage
            journal.close()


def test_records_are_written_when_the_disk_has_space_again(case):
    store = case.connect()
    journal = store.open(PROJECT, "s1")
    append_all(journal, [Notice("info", "one")])
    writer = store._database._writer
    (pages,) = writer.execute("PRAGMA page_count").fetchone()
    writer.execute(f"PRAGMA max_page_count = {pages}")
    journal.append(Envelope(2, 0.0, Notice("info", "x" * 500_000)))
    with pytest.raises(JournalError, match="full"):
        journal.sync()
    with pytest.raises(JournalError, match="full"):
        journal.append(Envelope(3, 0.0, Notice("info", "y")))
    assert len(journal.records()) == 2
    writer.execute("PRAGMA max_page_count = 1000000")
    append_all(journal, [Notice("info", "three")])
    journal.close()
    again = case.connect().open(PROJECT, "s1")
    assert [envelope.event.text[:5] for envelope in again.records()] == ["one", "xxxxx", "three"]


def test_failed_work_of_one_caller_does_not_undo_that_of_others(case):
    database = SqliteDatabase(case.path)
    database.write(lambda db: db.execute("CREATE TABLE numbers(n)"))

    def fail(db):
        db.execute("INSERT INTO numbers VALUES (-1)")
        raise ValueError("no")

    futures = [database.submit(lambda db, n=n: db.execute("INSERT INTO numbers VALUES (?)", [n])) for n in range(50)]
    failed = database.submit(fail)
    for future in futures:
        future.result()
    with pytest.raises(ValueError, match="no"):
        failed.result()
    rows = database.read(lambda db: db.execute("SELECT n FROM numbers").fetchall())
    assert sorted(n for (n,) in rows) == list(range(50))
    database.close()


def test_damaged_record_is_reported_and_keeps_its_number(case):
    store = case.connect()
    save(store, "s1")
    store._database.write(lambda db: db.execute("UPDATE records SET line = x'00' WHERE seq = 2"))
    journal = store.open(PROJECT, "s1")
    assert "1 damaged record" in journal.damage[0]
    assert journal.records()[1] == Envelope(2, 0.0, UnknownEvent("turn_started", {}))
    assert journal.records()[3].seq == 4


def test_deleted_text_is_not_in_the_file(case):
    store = case.connect()
    save(store, "s1", events_of_a_turn("extraordinarysecret", "anothersecretword"))
    store.delete("s1")
    case.close()
    assert b"extraordinarysecret" not in case.path.read_bytes()
    assert b"anothersecretword" not in case.path.read_bytes()


# -- the file ------------------------------------------------------------------------------------------------------


def test_older_database_is_updated_and_keeps_its_sessions(case):
    case.connect()
    case.close()
    with sqlite3.connect(case.path) as db:  # as an earlier version wrote it
        db.execute("ALTER TABLE sessions DROP COLUMN waiting")
        db.execute("ALTER TABLE users DROP COLUMN limits")
        db.execute("UPDATE schema_version SET version = 2")
        columns = "id, owner, project, meta, changed, open_turn"
        meta = msgspec.json.encode(SessionMeta("old"))
        db.execute(f"INSERT INTO sessions({columns}) VALUES ('old', 'alice', 'server', ?, 1.0, 'turn-1')", [meta])
    database = SqliteDatabase(case.path)
    try:
        assert [session.id for session in SqliteSessions(database).interrupted()] == ["old"]
    finally:
        database.close()


def test_newer_schema_is_refused(case):
    case.connect()
    case.close()
    with sqlite3.connect(case.path) as db:
        db.execute("UPDATE schema_version SET version = 99")
    with pytest.raises(UsageError, match=f"has schema 99, and this version of Ostler knows up to {len(MIGRATIONS)}"):
        SqliteDatabase(case.path)


def test_file_that_is_no_database_is_refused(tmp_path):
    path = tmp_path / "x.db"
    path.write_text("this is a text file and no database at all, really not\n" * 100)
    with pytest.raises(UsageError, match="cannot be used as a database"):
        SqliteDatabase(path)


def test_only_the_user_can_read_the_files(case):
    save(case.connect())
    for path in case.path.parent.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    assert stat.S_IMODE(case.path.parent.stat().st_mode) == 0o700


def test_commits_are_synced_to_disk(case):
    database = case.connect()._database
    assert database._writer.execute("PRAGMA synchronous").fetchone() == (2,)
    assert database._writer.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_marks_of_ended_processes_are_removed(case):
    kill_after(case.path, 1)
    folder = case.path.with_name("ostler.db-processes")
    assert len(list(folder.iterdir())) == 1
    database = SqliteDatabase(case.path)
    assert [path.name for path in folder.iterdir()] == [database.mark.name]
    database.close()
    assert list(folder.iterdir()) == []
