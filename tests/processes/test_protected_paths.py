"""Protected paths that are not locked are corrected after a command, and nothing else is touched."""

import os

import pytest

from ostler.processes.git_exec_files import QUARANTINE_SUFFIX
from ostler.processes.protected_paths import UnlockedPaths

pytestmark = pytest.mark.req("SH-8")


@pytest.fixture
def work(tmp_path):
    (tmp_path / "work" / "in").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    return tmp_path / "work"


def unlocked(work, *paths):
    return UnlockedPaths(tuple(str(work / path) for path in paths), (str(work),))


def test_new_path_is_quarantined(work):
    before = unlocked(work, "in/a", "in/b")
    (work / "in" / "a").mkdir()
    (work / "in" / "a" / "x").write_text("evil")
    (note,) = before.restore()
    assert "in/a was quarantined" in note
    assert os.listdir(work / "in") == ["a" + QUARANTINE_SUFFIX]


def test_changed_symlink_is_restored(work):
    (work / "a").symlink_to("in")
    before = unlocked(work, "a")
    (work / "a").unlink()
    (work / "a").symlink_to("/elsewhere")
    assert len(before.restore()) == 1
    assert os.readlink(work / "a") == "in" and os.readlink(work / f"a{QUARANTINE_SUFFIX}") == "/elsewhere"
    assert before.restore() == []


def test_changed_file_is_reported(work):
    (work / "a").write_text("mine")
    before = unlocked(work, "a")
    (work / "a").write_text("changed")
    assert "protected paths changed" in before.restore()[0]


@pytest.mark.parametrize("kind", ["absent", "link"])
def test_swapped_folder_is_not_followed(work, kind):
    if kind == "link":
        (work / "in" / "a").symlink_to("x")
    before = unlocked(work, "in/a")
    os.rename(work / "in", work / "away")
    (work / "in").symlink_to("../outside")
    outside = work.parent / "outside"
    if kind == "absent":
        (outside / "a").write_text("by the user")
    assert "could not be quarantined" in before.restore()[0]
    assert os.listdir(outside) == (["a"] if kind == "absent" else [])
