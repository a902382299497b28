"""What undo does not reach is told once in a project, and again when there is more of it."""

import pytest

from ostler.app.undo import WorkspaceUndo, open_checkpoints
from ostler.app.undo_gaps import ReportedGaps


async def told(work, folder, turn):
    """What a session tells whose turn has an effect."""
    past = open_checkpoints(work, folder)
    undo = WorkspaceUndo(past, ReportedGaps(folder))
    try:
        new = await undo.begin(turn)
        undo.heartbeat(turn)
        await undo.finish(turn)
        return [gap.partition(" ")[0] for gap in new]
    finally:
        past.close()


@pytest.fixture
def work(tmp_path):
    (tmp_path / "work" / ".git").mkdir(parents=True)
    return tmp_path / "work"


@pytest.mark.req("EN-13")
async def test_what_every_session_would_tell_is_told_before_the_first_effect_alone(tmp_path, work):
    assert await told(work, tmp_path / "kept", "s1/1") == [".git"]
    assert await told(work, tmp_path / "kept", "s2/1") == []
    assert ReportedGaps(tmp_path / "kept").reported() == [".git (git's own data)"]


async def test_a_turn_without_an_effect_told_nobody(tmp_path, work):
    past = open_checkpoints(work, tmp_path / "kept")
    assert await WorkspaceUndo(past, ReportedGaps(tmp_path / "kept")).begin("s1/1")
    past.close()
    assert await told(work, tmp_path / "kept", "s2/1") == [".git"]


def test_more_is_news_and_so_is_what_comes_back_or_is_everything(tmp_path):
    known = ReportedGaps(tmp_path)
    known.mark_reported([".git (own)", ". (the disk is full)"])
    assert known.unreported([".git (own)", "huge (too many files)"]) == ["huge (too many files)"]
    assert known.unreported([". (the disk is full)"]) == [". (the disk is full)"]
    known.mark_reported([])
    assert known.unreported([".git (own)"]) == [".git (own)"]


def test_a_file_that_is_not_ours_is_no_reason_to_be_silent(tmp_path):
    (tmp_path / "undo_gaps.json").write_text("[[[")
    known = ReportedGaps(tmp_path)
    assert known.unreported([".git (own)"]) == [".git (own)"]
    known.mark_reported([".git (own)"])
    assert known.unreported([".git (own)"]) == []
