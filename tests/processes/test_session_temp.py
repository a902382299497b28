"""The temporary folder of a session: private, gone with it, and swept when it was killed."""

import os

import pytest

from ostler.processes.session_temp import SessionTempFolder


@pytest.fixture(autouse=True)
def temp(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def _age(path):
    os.utime(path, (0, 0))


def test_it_is_private_made_late_and_removed(temp):
    folder = SessionTempFolder()
    assert os.listdir(temp) == []
    path = folder.subfolder("output")
    assert os.stat(path).st_mode & 0o777 == 0o700 and folder.subfolder("output") == path
    folder.remove()
    assert os.listdir(temp) == []
    folder.remove()


def test_what_a_killed_session_left_is_swept(temp):
    dead = temp / "ostler-session-dead"
    (dead / "output").mkdir(parents=True)
    (dead / "output" / "big").write_text("x")
    _age(dead)
    folder = SessionTempFolder()
    folder.subfolder("temp")
    folder.remove()
    assert os.listdir(temp) == []


def test_what_lives_or_is_young_or_is_not_ours_stays(temp):
    living = SessionTempFolder()
    _age(os.path.dirname(living.subfolder("temp")))
    (temp / "ostler-session-young").mkdir()
    (temp / "something-else").mkdir()
    _age(temp / "something-else")
    target = temp / "target"
    target.mkdir()
    (temp / "ostler-session-link").symlink_to(target)
    folder = SessionTempFolder()
    folder.subfolder("temp")
    folder.remove()
    assert len(os.listdir(temp)) == 5
    living.remove()
