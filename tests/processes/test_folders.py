"""The temporary folder of a session: private, gone with it, and swept when it was killed."""

import os

import pytest

from ostler.processes.folders import SessionFolder


@pytest.fixture(autouse=True)
def temp(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def _age(path):
    os.utime(path, (0, 0))


def test_it_is_private_made_late_and_removed(temp):
    folder = SessionFolder()
    assert os.listdir(temp) == []
    path = folder.sub("output")
    assert os.stat(path).st_mode & 0o777 == 0o700 and folder.sub("output") == path
    folder.remove()
    assert os.listdir(temp) == []
    folder.remove()


def test_what_a_killed_session_left_is_swept(temp):
    dead = temp / "ostler-session-dead"
    (dead / "output").mkdir(parents=True)
    (dead / "output" / "big").write_text("x")
    _age(dead)
    folder = SessionFolder()
    folder.sub("temp")
    folder.remove()
    assert os.listdir(temp) == []


def test_what_lives_or_is_young_or_is_not_ours_stays(temp):
    living = SessionFolder()
    _age(os.path.dirname(living.sub("temp")))
    (temp / "ostler-session-young").mkdir()
    (temp / "something-else").mkdir()
    _age(temp / "something-else")
    target = temp / "target"
    target.mkdir()
    (temp / "ostler-session-link").symlink_to(target)
    folder = SessionFolder()
    folder.sub("temp")
    folder.remove()
    assert len(os.listdir(temp)) == 5
    living.remove()
