"""The file journal: acknowledged records survive damage at the end or in the middle of the file."""

import fcntl
import os
import re
import resource
import stat
import subprocess
import sys
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tiers import examples

from ostler.core.errors import JournalError
from ostler.core.events import Envelope, Renamed, ToolCalled, ToolFinished, UnknownEvent
from ostler.core.tools import ToolCall, ToolResult
from ostler.journal import record_codec, records
from ostler.journal.file_journal import JOURNAL_NAME, FileJournal, read_journal
from ostler.journal.lock import is_locked

pytestmark = pytest.mark.req("SE-1")


def titled(seq, title=None):
    return Envelope(seq, 100.0 + seq, Renamed(title or f"title {seq} é"))


def fill(folder, count=3):
    journal = FileJournal(folder, "s1")
    for number in range(1, count + 1):
        journal.append(titled(number))
    journal.sync()
    journal.close()
    return folder / JOURNAL_NAME


def reopen(path):
    """Return the readable titles and the reported damage, after checking that another record can be appended."""
    journal = FileJournal(path.parent, "s1")
    found, damage = titles(journal), journal.damage
    last = journal.records()[-1].seq if len(journal.records()) else 0
    journal.append(titled(last + 1, "next"))
    journal.close()
    reopened = FileJournal(path.parent, "s1")
    assert titles(reopened) == [*found, "next"]
    seqs = [envelope.seq for envelope in reopened.records()]
    assert seqs == sorted(set(seqs))
    reopened.close()
    return found, damage


def titles(journal):
    return [envelope.event.title for envelope in journal.records()]


ALL = ["title 1 é", "title 2 é", "title 3 é"]


def test_appended_records_are_read_back(tmp_path):
    assert reopen(fill(tmp_path)) == (ALL, [])


def test_files_are_private_whatever_the_umask(tmp_path):
    before = os.umask(0)
    try:
        path = fill(tmp_path / "deep" / "session")
    finally:
        os.umask(before)
    assert {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()} == {0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_truncated_file_loses_only_truncated_records(tmp_path):
    complete = fill(tmp_path / "whole", 4).read_bytes()
    ends = [titles_read.end() for titles_read in re.finditer(b"\n", complete)]
    for length in range(ends[0], len(complete)):
        path = tmp_path / f"cut-{length}" / JOURNAL_NAME
        path.parent.mkdir()
        path.write_bytes(complete[:length])
        titles_read, damage = reopen(path)
        count = sum(end <= length + 1 for end in ends)  # a record that lacks only its newline is valid
        assert titles_read == [f"title {number} é" for number in range(1, count + 1)]
        incomplete = length not in ends and length + 1 not in ends
        assert damage == (
            ["journal.jsonl: the last record was incomplete; it was moved to journal.torn"] if incomplete else []
        )
        assert path.with_suffix(".torn").exists() is incomplete
        if incomplete:
            assert path.with_suffix(".torn").read_bytes() == complete[ends[count - 1] : length] + b"\n"


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    return fill(tmp_path_factory.mktemp("sample"), 4).read_bytes()


@examples(300)
@given(data=st.data())
def test_flipped_byte_loses_at_most_two_records_and_invents_none(sample, tmp_path_factory, data):
    """Two are lost if the byte is the newline between them."""
    offset = data.draw(st.integers(0, len(sample) - 1))
    value = data.draw(st.integers(0, 255).filter(lambda new: new != sample[offset]))
    path = tmp_path_factory.mktemp("flipped") / JOURNAL_NAME
    path.write_bytes(sample[:offset] + bytes([value]) + sample[offset + 1 :])
    found, damage = reopen(path)
    assert set(found) <= {f"title {number} é" for number in range(1, 5)}
    assert len(found) >= 3 or (sample[offset] == 10 and len(found) >= 2)
    assert damage or len(found) == 4


@examples(200)
@given(garbage=st.lists(st.binary(max_size=200) | st.sampled_from([b'{"v":1,"seq":', b"\n", b"\0" * 50]), max_size=8))
def test_garbage_is_skipped(sample, tmp_path_factory, garbage):
    path = tmp_path_factory.mktemp("garbage") / JOURNAL_NAME
    lines = sample.splitlines(keepends=True)
    path.write_bytes(lines[0] + b"".join(garbage) + b"\n" + b"".join(lines[1:]))
    found, _ = reopen(path)
    assert found == [f"title {number} é" for number in range(1, 5)]


@pytest.mark.parametrize(
    ("damage_file", "readable"),
    [
        (lambda a, b, c: a + b"\0" * 4096 + b"\n" + c, [0, 2]),
        (lambda a, b, c: a + b"\0" * 4096 + b + c, [0, 1, 2]),
        (lambda a, b, c: a + b[:20] + b"X" + b[21:] + c, [0, 2]),
        (lambda a, b, c: a + b[: len(b) // 2] + b"\n" + c, [0, 2]),
        (lambda a, b, c: a + b[: len(b) // 2] + c, [0, 2]),
        (lambda a, b, c: a + b.rstrip(b"\n") + c, [0, 1, 2]),
        (lambda a, b, c: a + b"[" * 5000 + b"\n" + c, [0, 2]),
        (lambda a, b, c: a + b + b + c, [0, 1, 2]),
        (lambda a, b, c: a + c + b, [0, 2]),
        (lambda a, b, c: b"\xef\xbb\xbf" + a + b + c, [0, 1, 2]),
        (lambda a, b, c: (a + b + c).replace(b"\n", b"\r\n"), [0, 1, 2]),
    ],
    ids=["nuls", "nuls-glued", "flip", "half", "half-glued", "glued", "deep", "twice", "swapped", "bom", "crlf"],
)
@pytest.mark.invariant("J1")
def test_damage_in_the_middle_is_reported_and_not_rewritten(tmp_path, damage_file, readable):
    path = fill(tmp_path)
    damaged = damage_file(*path.read_bytes().splitlines(keepends=True))
    path.write_bytes(damaged)
    found, damage = reopen(path)
    assert found == [ALL[number] for number in readable]
    joined_lines = damaged.count(b"\n") == 2 and readable == [0, 1, 2] and b"\0" not in damaged
    assert bool(damage) is not (joined_lines or b"\r\n" in damaged)
    assert path.read_bytes().startswith(damaged)


def test_oversized_line_is_skipped(tmp_path, monkeypatch):
    monkeypatch.setattr(record_codec, "MAX_RECORD_BYTES", 4096)
    path = fill(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b"x" * 100_000 + b"\n" + b"".join(lines[1:]) + b"\0" * 100_000)
    found, damage = reopen(path)
    assert found == ALL
    assert len(damage) == 2
    journal = FileJournal(tmp_path, "s1")
    with pytest.raises(JournalError, match="too large"):
        journal.append(titled(9, "x" * 5000))
    assert len(journal.records()) == 4
    journal.close()


def test_newer_format_is_refused_and_unchanged(tmp_path):
    path = fill(tmp_path)
    body = b'{"v":2,"seq":4,"time":1.0,"event":{"type":"new"}'
    path.write_bytes(path.read_bytes() + b'%b,"crc":"%08x"}\n' % (body, zlib.crc32(body)))
    before = path.read_bytes()
    for read in (lambda: FileJournal(tmp_path, "s1"), lambda: read_journal(path)):
        with pytest.raises(JournalError, match=r"format 2.*newer Ostler"):
            read()
    assert path.read_bytes() == before
    assert not is_locked(tmp_path)


def test_unknown_events_are_kept(tmp_path):
    journal = FileJournal(tmp_path, "s1")
    events = [UnknownEvent("from_the-future.2", {"x": [1]}), UnknownEvent("ab", {})]
    for seq, event in enumerate(events, 1):
        journal.append(Envelope(seq, 1.0, event))
    journal.close()
    reopened = FileJournal(tmp_path, "s1")
    assert [envelope.event for envelope in reopened.records()] == events
    reopened.close()


def test_invalid_event_becomes_unknown(tmp_path):
    body = b'{"v":1,"seq":1,"time":1.0,"event":{"type":"renamed","title":["no","text"]}'
    (tmp_path / JOURNAL_NAME).write_bytes(b'%b,"crc":"%08x"}\n' % (body, zlib.crc32(body)))
    journal = FileJournal(tmp_path, "s1")
    assert journal.records()[0].event == UnknownEvent("renamed", {})
    assert journal.damage == []
    journal.close()


def test_unpaired_surrogates_are_replaced(tmp_path):
    journal = FileJournal(tmp_path, "s1")
    call = ToolCall("a", "t", {"x": "half \ud83d of a pair", "n": 10**30, "k\udc00": 1})
    journal.append(Envelope(1, 1.0, ToolCalled(call)))
    journal.append(Envelope(2, 1.0, UnknownEvent("u", {"x": "\udfff"})))
    journal.close()
    assert read_journal(tmp_path / JOURNAL_NAME)[0].event.call.arguments == {
        "x": "half ? of a pair",
        "n": 10**30,
        "k?": 1,
    }


@pytest.mark.parametrize("call_id", ["c1", 'a"b', "é\\", "", "x" * 300])
def test_results_are_found_by_call_id(tmp_path, call_id):
    journal = FileJournal(tmp_path, "s1")
    result = ToolResult(call_id, "ok", "done")
    journal.append(Envelope(1, 1.0, ToolFinished(result)))
    assert journal.records().result(call_id) == result
    journal.close()
    stored = read_journal(tmp_path / JOURNAL_NAME)
    assert stored.result(call_id) == result
    assert stored.result("another") is None
    assert stored.type_at(0) == "tool_finished"


def test_cache_is_limited_and_events_are_decoded_again(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "CACHE_BYTES", 500)
    journal = FileJournal(tmp_path, "s1")
    for seq in range(1, 101):
        journal.append(titled(seq))
    stored = journal.records()
    assert len(stored._cache) < 10
    assert titles(journal) == [f"title {seq} é" for seq in range(1, 101)]
    assert stored[-100].seq == 1
    with pytest.raises(IndexError):
        stored[100]
    journal.close()
    assert stored[0].seq == 1  # readable after closing


@pytest.mark.invariant("J7")
def test_second_process_gets_a_clear_error(tmp_path):
    journal = FileJournal(tmp_path, "s1")
    imports = "import sys, pathlib; from ostler.journal.file_journal import FileJournal"
    code = f"{imports}; FileJournal(pathlib.Path(sys.argv[1]), 's1')"
    other = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)
    assert "is open in another process" in other.stderr
    assert "sessions fork s1" in other.stderr
    assert is_locked(tmp_path)
    journal.close()
    assert not is_locked(tmp_path)
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)


def test_reading_takes_no_lock_and_changes_nothing(tmp_path):
    path = fill(tmp_path)
    journal = FileJournal(tmp_path, "s1")
    path.write_bytes(path.read_bytes() + b"half a rec")
    before = path.read_bytes()
    assert len(read_journal(path)) == 3
    assert path.read_bytes() == before
    journal.close()


def test_write_fails_after_another_program_changed_the_file(tmp_path):
    journal = FileJournal(tmp_path, "s1")
    journal.append(titled(1))
    with open(journal.path, "ab") as file:
        file.write(b"half a record of another program")
    with pytest.raises(JournalError, match="changed by another program"):
        journal.append(titled(2))
    journal.close()
    assert reopen(tmp_path / JOURNAL_NAME)[0] == ["title 1 é"]


FULL = """
import sys, pathlib, resource, signal
from ostler.journal.journal_store import JournalStore
from ostler.core.errors import JournalError
from ostler.core.events import Envelope, Renamed
from ostler.core.events import TurnStarted
from ostler.core.prompt import Prompt, TextContent
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = JournalStore(pathlib.Path(sys.argv[1])); journal = store.open(store.session("p", "s1"))
size = journal.path.stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + int(sys.argv[2]), size + int(sys.argv[2])))
written = 0
try:
    for seq in range(1, 1000):
        journal.append(Envelope(seq, 1.0, TurnStarted("t", Prompt("p", (TextContent("x" * 50),)))))
        written = seq
except JournalError as error:
    print(error)
print(written)
journal.close()
"""


@pytest.mark.parametrize("space", [0, 1, 40, 137, 2000])
def test_full_disk_is_a_clear_error_and_earlier_records_are_intact(tmp_path, space):
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path), str(space)], capture_output=True, text=True, check=True
    )
    message, written = done.stdout.splitlines()
    assert "earlier records are intact" in message
    path = tmp_path / "p" / "sessions" / "s1" / JOURNAL_NAME
    stored = read_journal(path)
    assert [envelope.seq for envelope in stored] == list(range(1, int(written) + 1))
    assert stored.damage.tail_offset is None
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


def test_unwritable_folder_is_reported(tmp_path):
    if os.geteuid() == 0:
        blocked = tmp_path / "file"
        blocked.write_text("in the way")
        target = blocked / "session"
    else:
        tmp_path.chmod(0o500)
        target = tmp_path / "session"
    with pytest.raises(JournalError, match="OSTLER_HOME"):
        FileJournal(target, "s1")


def test_folder_deleted_during_opening_is_reported(tmp_path, monkeypatch):
    fill(tmp_path / "s1")
    flock = fcntl.flock

    def rename_then_lock(file, operation):
        (tmp_path / "s1").rename(tmp_path / "gone")
        flock(file, operation)

    monkeypatch.setattr(fcntl, "flock", rename_then_lock)
    with pytest.raises(JournalError, match="was just deleted"):
        FileJournal(tmp_path / "s1", "s1")


def test_sync_includes_folders_of_a_new_session_only(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr("ostler.journal.file_journal.os.fdatasync", lambda file: synced.append("data"))
    monkeypatch.setattr(
        "ostler.journal.file_journal.os.fsync", lambda file: synced.append(os.readlink(f"/proc/self/fd/{file}"))
    )
    journal = FileJournal(tmp_path / "a" / "b", "s1")
    journal.append(titled(1))
    journal.sync()
    journal.sync()
    journal.close()
    assert synced[:3] == ["data", str(tmp_path / "a" / "b"), str(tmp_path / "a")]
    assert synced[-1] == "data"
    synced.clear()
    reopened = FileJournal(tmp_path / "a" / "b", "s1")
    reopened.sync()
    reopened.close()
    assert synced == ["data"]


def test_order_is_by_number_not_by_time(tmp_path):
    journal = FileJournal(tmp_path, "s1")
    for seq, time in enumerate((5000.0, 1400.0, 1e9, 0.0), 1):
        journal.append(Envelope(seq, time, Renamed(str(seq))))
    journal.close()
    stored = read_journal(tmp_path / JOURNAL_NAME)
    assert [envelope.seq for envelope in stored] == [1, 2, 3, 4]
    assert [stored.index_after(seq) for seq in range(6)] == [0, 1, 2, 3, 4, 4]
