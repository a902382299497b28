"""What waits to be sent outlives the process: kept, taken by the next one, and never from one that lives."""

import os
import subprocess
import sys

import pytest

from ostler.app.queued import QueueFile


def dead_process():
    done = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    return int(done.stdout)


@pytest.mark.req("EN-16")
def test_what_a_dead_process_had_waiting_is_taken_once(tmp_path):
    (tmp_path / f"queued-{dead_process()}.json").write_text('["one", "two\\nlines"]')
    queue = QueueFile(tmp_path)
    assert queue.left_behind() == "one\ntwo\nlines"
    assert queue.left_behind() == ""
    assert not list(tmp_path.iterdir())


@pytest.mark.req("EN-16")
def test_what_waits_is_on_disk_until_it_does_not_any_more(tmp_path):
    queue = QueueFile(tmp_path)
    queue.keep(["a", "b"])
    (file,) = tmp_path.iterdir()
    assert file.read_text() == '["a","b"]'
    assert file.stat().st_mode & 0o777 == 0o600
    assert QueueFile(tmp_path).left_behind() == "", "it is this living process's own"
    queue.keep([])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["queued-1.json", f"queued-{os.getppid()}.json", "queued-x.json", "queued--5.json"])
def test_only_what_a_dead_process_left_is_taken(tmp_path, name):
    (tmp_path / name).write_text('["theirs"]')
    assert QueueFile(tmp_path).left_behind() == ""
    assert (tmp_path / name).exists()


@pytest.mark.parametrize("content", ["", "{", '{"a": 1}', "[1]"])
def test_a_broken_file_is_no_error(tmp_path, content):
    (tmp_path / f"queued-{dead_process()}.json").write_text(content)
    assert QueueFile(tmp_path).left_behind() == ""


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path):
    QueueFile(tmp_path / "nowhere").keep(["a"])
