"""Captured output in memory and in spill files."""

import os

import pytest

from ostler.processes.output import CommandOutput, SpillFile


def test_short_output_is_not_spilled(tmp_path):
    output = CommandOutput(lambda: pytest.fail("spilled"), cap=100)
    output.feed("stdout", b"a" * 100)
    output.feed("stderr", b"b" * 100)
    output.close()
    assert not output.truncated and output.spill_path == ""


def test_spill_file_has_both_streams_in_order(tmp_path):
    output = CommandOutput(lambda: SpillFile(str(tmp_path / "new"), "x"), cap=10)
    for stream, chunk in (("stdout", b"one "), ("stderr", b"two "), ("stdout", b"three more"), ("stderr", b" four")):
        output.feed(stream, chunk)
    output.close()
    assert output.truncated and output.spill_path == str(tmp_path / "new" / "x")
    assert (tmp_path / "new" / "x").read_bytes() == b"one two three more four"
    assert os.stat(tmp_path / "new").st_mode & 0o777 == 0o700


def test_spill_file_has_its_own_limit(tmp_path):
    spill = SpillFile(str(tmp_path), "x", cap=5)
    for chunk in (b"abc", b"def", b"ghi"):
        spill.feed(chunk)
    spill.close()
    assert (tmp_path / "x").read_bytes() == b"abcde"


def test_spill_file_does_not_follow_symlink(tmp_path):
    (tmp_path / "target").write_text("precious")
    (tmp_path / "x").symlink_to(tmp_path / "target")
    with pytest.raises(OSError, match="exists"):
        SpillFile(str(tmp_path), "x")


def test_full_disk_is_ignored():
    spill = SpillFile.__new__(SpillFile)
    spill.path, spill._bytes_left, spill._fd = "/dev/full", 100, os.open("/dev/full", os.O_WRONLY)
    spill.feed(b"x")
    spill.feed(b"y")
    assert spill._fd == -1


def test_unwritable_folder_leaves_head_and_tail():
    output = CommandOutput(lambda: SpillFile("/proc/nowhere", "x"), cap=10)
    output.feed("stdout", b"x" * 100)
    output.feed("stdout", b"end")
    output.close()
    assert output.spill_path == "" and output.streams["stdout"].text().endswith("end")
