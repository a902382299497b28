"""The temporary folder of a session: private, removed with it, or later if it was killed."""

import os

import pytest

from ostler.processes.session_temp import SessionTempFolder


@pytest.fixture(autouse=True)
def temp(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def _make_old(path):
    os.utime(path, (0, 0))


def test_folder_is_private_created_on_use_and_removed(temp):
    folder = SessionTempFolder()
    assert os.listdir(temp) == []
    path = folder.subfolder("output")
    assert os.stat(path).st_mode & 0o777 == 0o700 and folder.subfolder("output") == path
    folder.remove()
    assert os.listdir(temp) == []
    folder.remove()


def test_folder_of_killed_session_is_removed(temp):
    dead = temp / "ostler-session-dead"
    (dead / "output").mkdir(parents=True)
    (dead / "output" / "big").write_text("x")
    _make_old(dead)
    folder = SessionTempFolder()
    folder.subfolder("temp")
    folder.remove()
    assert os.listdir(temp) == []


def test_used_recent_and_foreign_folders_are_kept(temp):
    other = SessionTempFolder()
    _make_old(os.path.dirname(other.subfolder("temp")))
    (temp / "ostler-session-young").mkdir()
    (temp / "something-else").mkdir()
    _make_old(temp / "something-else")
    target = temp / "target"
    target.mkdir()
    (temp / "ostler-session-link").symlink_to(target)
    folder = SessionTempFolder()
    folder.subfolder("temp")
    folder.remove()
    assert len(os.listdir(temp)) == 5
    other.remove()
