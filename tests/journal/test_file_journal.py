"""The file journal: what was acknowledged is there again, whatever happened to the file's end or middle."""

import fcntl
import os
import re
import resource
import stat
import subprocess
import sys
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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


def opened(path):
    """The titles that are there, the damage that is told, and one more record appended and read back."""
    journal = FileJournal(path.parent, "s1")
    found, damage = titles(journal), journal.damage
    last = journal.records()[-1].seq if len(journal.records()) else 0
    journal.append(titled(last + 1, "next"))
    journal.close()
    again = FileJournal(path.parent, "s1")
    assert titles(again) == [*found, "next"]
    seqs = [envelope.seq for envelope in again.records()]
    assert seqs == sorted(set(seqs))
    again.close()
    return found, damage


def titles(journal):
    return [envelope.event.title for envelope in journal.records()]


ALL = ["title 1 é", "title 2 é", "title 3 é"]


def test_what_was_appended_is_read_back(tmp_path):
    assert opened(fill(tmp_path)) == (ALL, [])


def test_files_are_the_owners_alone_whatever_the_umask(tmp_path):
    before = os.umask(0)
    try:
        path = fill(tmp_path / "deep" / "session")
    finally:
        os.umask(before)
    assert {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()} == {0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_file_cut_at_any_byte_of_its_last_three_records_loses_only_what_was_cut(tmp_path):
    whole = fill(tmp_path / "whole", 4).read_bytes()
    ends = [found.end() for found in re.finditer(b"\n", whole)]
    for cut in range(ends[0], len(whole)):
        path = tmp_path / f"cut-{cut}" / JOURNAL_NAME
        path.parent.mkdir()
        path.write_bytes(whole[:cut])
        found, damage = opened(path)
        kept = sum(end <= cut + 1 for end in ends)  # a record that lacks only its newline is whole
        assert found == [f"title {number} é" for number in range(1, kept + 1)]
        torn = cut not in ends and cut + 1 not in ends
        assert damage == (["journal.jsonl: the last record was torn and is set aside in journal.torn"] if torn else [])
        assert path.with_suffix(".torn").exists() is torn
        if torn:
            assert path.with_suffix(".torn").read_bytes() == whole[ends[kept - 1] : cut] + b"\n"


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    return fill(tmp_path_factory.mktemp("sample"), 4).read_bytes()


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_a_flipped_byte_costs_at_most_two_records_and_never_makes_one_up(sample, tmp_path_factory, data):
    """Two, where it is the newline between them."""
    at = data.draw(st.integers(0, len(sample) - 1))
    value = data.draw(st.integers(0, 255).filter(lambda new: new != sample[at]))
    path = tmp_path_factory.mktemp("flipped") / JOURNAL_NAME
    path.write_bytes(sample[:at] + bytes([value]) + sample[at + 1 :])
    found, damage = opened(path)
    assert set(found) <= {f"title {number} é" for number in range(1, 5)}
    assert len(found) >= 3 or (sample[at] == 10 and len(found) >= 2)
    assert damage or len(found) == 4


@settings(max_examples=200, deadline=None)
@given(garbage=st.lists(st.binary(max_size=200) | st.sampled_from([b'{"v":1,"seq":', b"\n", b"\0" * 50]), max_size=8))
def test_garbage_never_stops_a_session_and_never_becomes_a_record(sample, tmp_path_factory, garbage):
    path = tmp_path_factory.mktemp("garbage") / JOURNAL_NAME
    lines = sample.splitlines(keepends=True)
    path.write_bytes(lines[0] + b"".join(garbage) + b"\n" + b"".join(lines[1:]))
    found, _ = opened(path)
    assert found == [f"title {number} é" for number in range(1, 5)]


@pytest.mark.parametrize(
    ("harm", "kept"),
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
def test_what_a_crash_or_an_editor_does_to_the_middle_is_survived_told_and_left_as_it_is(tmp_path, harm, kept):
    path = fill(tmp_path)
    broken = harm(*path.read_bytes().splitlines(keepends=True))
    path.write_bytes(broken)
    found, damage = opened(path)
    assert found == [ALL[number] for number in kept]
    glued_whole = broken.count(b"\n") == 2 and kept == [0, 1, 2] and b"\0" not in broken
    assert bool(damage) is not (glued_whole or b"\r\n" in broken)
    assert path.read_bytes().startswith(broken)


def test_a_line_longer_than_any_record_is_passed_by_in_bounded_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(record_codec, "MAX_RECORD_BYTES", 4096)
    path = fill(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b"x" * 100_000 + b"\n" + b"".join(lines[1:]) + b"\0" * 100_000)
    found, damage = opened(path)
    assert found == ALL
    assert len(damage) == 2
    journal = FileJournal(tmp_path, "s1")
    with pytest.raises(JournalError, match="too large"):
        journal.append(titled(9, "x" * 5000))
    assert len(journal.records()) == 4
    journal.close()


def test_a_newer_format_is_refused_with_the_reason_and_not_touched(tmp_path):
    path = fill(tmp_path)
    body = b'{"v":2,"seq":4,"time":1.0,"event":{"type":"new"}'
    path.write_bytes(path.read_bytes() + b'%b,"crc":"%08x"}\n' % (body, zlib.crc32(body)))
    before = path.read_bytes()
    for read in (lambda: FileJournal(tmp_path, "s1"), lambda: read_journal(path)):
        with pytest.raises(JournalError, match=r"format 2.*newer Ostler"):
            read()
    assert path.read_bytes() == before
    assert not is_locked(tmp_path)


def test_an_event_of_a_newer_version_is_kept(tmp_path):
    journal = FileJournal(tmp_path, "s1")
    events = [UnknownEvent("from_the-future.2", {"x": [1]}), UnknownEvent("ab", {})]
    for seq, event in enumerate(events, 1):
        journal.append(Envelope(seq, 1.0, event))
    journal.close()
    again = FileJournal(tmp_path, "s1")
    assert [envelope.event for envelope in again.records()] == events
    again.close()


def test_a_known_event_that_makes_no_sense_is_kept_and_passed_over(tmp_path):
    body = b'{"v":1,"seq":1,"time":1.0,"event":{"type":"renamed","title":["no","text"]}'
    (tmp_path / JOURNAL_NAME).write_bytes(b'%b,"crc":"%08x"}\n' % (body, zlib.crc32(body)))
    journal = FileJournal(tmp_path, "s1")
    assert journal.records()[0].event == UnknownEvent("renamed", {})
    assert journal.damage == []
    journal.close()


def test_what_no_utf8_can_hold_is_kept_as_well_as_can_be(tmp_path):
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
def test_results_are_found_by_their_call(tmp_path, call_id):
    journal = FileJournal(tmp_path, "s1")
    result = ToolResult(call_id, "ok", "done")
    journal.append(Envelope(1, 1.0, ToolFinished(result)))
    assert journal.records().result(call_id) == result
    journal.close()
    past = read_journal(tmp_path / JOURNAL_NAME)
    assert past.result(call_id) == result
    assert past.result("another") is None
    assert past.type_at(0) == "tool_finished"


def test_old_events_are_let_go_and_read_again(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "CACHE_BYTES", 500)
    journal = FileJournal(tmp_path, "s1")
    for seq in range(1, 101):
        journal.append(titled(seq))
    past = journal.records()
    assert len(past._cache) < 10
    assert titles(journal) == [f"title {seq} é" for seq in range(1, 101)]
    assert past[-100].seq == 1
    with pytest.raises(IndexError):
        past[100]
    journal.close()
    assert past[0].seq == 1  # a late reader


def test_a_second_process_gets_a_clear_error(tmp_path):
    journal = FileJournal(tmp_path, "s1")
    code = "import sys, pathlib; from ostler.journal.file_journal import FileJournal; FileJournal(pathlib.Path(sys.argv[1]), 's1')"
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


def test_another_program_writing_to_the_file_stops_ours(tmp_path):
    journal = FileJournal(tmp_path, "s1")
    journal.append(titled(1))
    with open(journal.path, "ab") as file:
        file.write(b"half a record of somebody")
    with pytest.raises(JournalError, match="changed by another program"):
        journal.append(titled(2))
    journal.close()
    assert opened(tmp_path / JOURNAL_NAME)[0] == ["title 1 é"]


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
kept = 0
try:
    for seq in range(1, 1000):
        journal.append(Envelope(seq, 1.0, TurnStarted("t", Prompt("p", (TextContent("x" * 50),)))))
        kept = seq
except JournalError as error:
    print(error)
print(kept)
journal.close()
"""


@pytest.mark.parametrize("room", [0, 1, 40, 137, 2000])
def test_a_full_disk_is_one_clear_error_with_everything_before_it_intact(tmp_path, room):
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path), str(room)], capture_output=True, text=True, check=True
    )
    told, kept = done.stdout.splitlines()
    assert "everything before this is intact" in told
    path = tmp_path / "p" / "sessions" / "s1" / JOURNAL_NAME
    past = read_journal(path)
    assert [envelope.seq for envelope in past] == list(range(1, int(kept) + 1))
    assert past.damage.tail_offset is None
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    if os.geteuid() == 0:
        blocked = tmp_path / "file"
        blocked.write_text("in the way")
        target = blocked / "session"
    else:
        tmp_path.chmod(0o500)
        target = tmp_path / "session"
    with pytest.raises(JournalError, match="OSTLER_HOME"):
        FileJournal(target, "s1")


def test_a_folder_that_is_deleted_while_it_is_opened_is_told(tmp_path, monkeypatch):
    fill(tmp_path / "s1")
    flock = fcntl.flock

    def too_late(file, how):
        (tmp_path / "s1").rename(tmp_path / "gone")
        flock(file, how)

    monkeypatch.setattr(fcntl, "flock", too_late)
    with pytest.raises(JournalError, match="deleted just now"):
        FileJournal(tmp_path / "s1", "s1")


def test_a_new_session_is_made_lasting_with_its_folders_and_an_old_one_only_with_its_data(tmp_path, monkeypatch):
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
    again = FileJournal(tmp_path / "a" / "b", "s1")
    again.sync()
    again.close()
    assert synced == ["data"]


def test_order_is_by_number_whatever_the_clock_says(tmp_path):
    journal = FileJournal(tmp_path, "s1")
    for seq, time in enumerate((5000.0, 1400.0, 1e9, 0.0), 1):
        journal.append(Envelope(seq, time, Renamed(str(seq))))
    journal.close()
    past = read_journal(tmp_path / JOURNAL_NAME)
    assert [envelope.seq for envelope in past] == [1, 2, 3, 4]
    assert [past.index_after(seq) for seq in range(6)] == [0, 1, 2, 3, 4, 4]
