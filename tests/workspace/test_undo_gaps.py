"""Paths that undo cannot restore are reported once per project, and again if there are more."""

import pytest

from ostler.workspace.session_undo import WorkspaceUndo, open_checkpoints
from ostler.workspace.undo_gaps import ReportedGaps


async def reported_paths(work, folder, turn):
    """Run a turn with a side effect and return the gaps that it reports."""
    checkpoints = open_checkpoints(work, folder)
    undo = WorkspaceUndo(checkpoints, ReportedGaps(folder))
    try:
        new = await undo.begin(turn)
        undo.heartbeat(turn)
        await undo.finish(turn)
        return [gap.partition(" ")[0] for gap in new]
    finally:
        checkpoints.close()


@pytest.fixture
def work(tmp_path):
    (tmp_path / "work" / ".git").mkdir(parents=True)
    return tmp_path / "work"


@pytest.mark.req("EN-13")
async def test_gaps_are_reported_once_per_project(tmp_path, work):
    assert await reported_paths(work, tmp_path / "store", "s1/1") == [".git"]
    assert await reported_paths(work, tmp_path / "store", "s2/1") == []
    assert ReportedGaps(tmp_path / "store").reported() == [".git (git's own data)"]


async def test_turn_without_side_effects_reports_nothing(tmp_path, work):
    checkpoints = open_checkpoints(work, tmp_path / "store")
    assert await WorkspaceUndo(checkpoints, ReportedGaps(tmp_path / "store")).begin("s1/1")
    checkpoints.close()
    assert await reported_paths(work, tmp_path / "store", "s2/1") == [".git"]


def test_new_and_returning_gaps_are_reported(tmp_path):
    gaps = ReportedGaps(tmp_path)
    gaps.mark_reported([".git (own)", ". (the disk is full)"])
    assert gaps.unreported([".git (own)", "huge (too many files)"]) == ["huge (too many files)"]
    assert gaps.unreported([". (the disk is full)"]) == [". (the disk is full)"]
    gaps.mark_reported([])
    assert gaps.unreported([".git (own)"]) == [".git (own)"]


def test_invalid_file_is_treated_as_empty(tmp_path):
    (tmp_path / "undo_gaps.json").write_text("[[[")
    gaps = ReportedGaps(tmp_path)
    assert gaps.unreported([".git (own)"]) == [".git (own)"]
    gaps.mark_reported([".git (own)"])
    assert gaps.unreported([".git (own)"]) == []
