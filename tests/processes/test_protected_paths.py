"""Protected paths that nothing locks: put right when a command has ended, and never elsewhere."""

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


def test_what_was_absent_is_absent_again(work):
    before = unlocked(work, "in/a", "in/b")
    (work / "in" / "a").mkdir()
    (work / "in" / "a" / "x").write_text("evil")
    (told,) = before.restore()
    assert "in/a was set aside" in told
    assert os.listdir(work / "in") == ["a" + QUARANTINE_SUFFIX]


def test_a_link_leads_where_it_led(work):
    (work / "a").symlink_to("in")
    before = unlocked(work, "a")
    (work / "a").unlink()
    (work / "a").symlink_to("/elsewhere")
    assert len(before.restore()) == 1
    assert os.readlink(work / "a") == "in" and os.readlink(work / f"a{QUARANTINE_SUFFIX}") == "/elsewhere"
    assert before.restore() == []


def test_what_was_there_is_told(work):
    (work / "a").write_text("mine")
    before = unlocked(work, "a")
    (work / "a").write_text("theirs now")
    assert "protected paths changed" in before.restore()[0]


@pytest.mark.parametrize("kind", ["absent", "link"])
def test_nothing_is_done_where_a_link_leads_meanwhile(work, kind):
    if kind == "link":
        (work / "in" / "a").symlink_to("x")
    before = unlocked(work, "in/a")
    os.rename(work / "in", work / "away")
    (work / "in").symlink_to("../outside")
    outside = work.parent / "outside"
    if kind == "absent":
        (outside / "a").write_text("a person's")
    assert "could not be set aside" in before.restore()[0]
    assert os.listdir(outside) == (["a"] if kind == "absent" else [])
