"""Which turn `undo` and `redo` use if none is named."""

import pytest
from tests.workspace.stored_changes import stored_changes

from ostler.core.errors import UsageError
from ostler.workspace.checkpoints import Checkpoints
from ostler.workspace.session_undo import make_plan, open_checkpoints

pytestmark = pytest.mark.req("EN-13")


@pytest.fixture
async def two_turns(tmp_path):
    """Yield a workspace and checkpoints with two turns, each of which created a file."""
    root = tmp_path / "work"
    root.mkdir()
    checkpoints = Checkpoints(str(root), str(tmp_path / "store"))
    for turn in ("one", "two"):
        await checkpoints.begin(turn)
        (root / turn).write_text("made")
        await checkpoints.finish(turn)
    yield root, checkpoints
    checkpoints.close()


async def test_ostlers_own_files_are_not_changes_of_a_turn(tmp_path, monkeypatch):
    """In the home folder, Ostler's journals are in the workspace."""
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / ".ostler" / "projects" / "p"
    (folder / "sessions").mkdir(parents=True)
    checkpoints = open_checkpoints(tmp_path, folder)
    assert await checkpoints.begin("t") == []
    (folder / "sessions" / "journal.jsonl").write_text("record")
    (tmp_path / "made").write_text("by the turn")
    await checkpoints.finish("t")
    assert list(await stored_changes(checkpoints, "t")) == ["made"]
    checkpoints.close()


async def test_turn_with_conflicts_is_not_skipped(two_turns):
    root, checkpoints = two_turns
    (root / "two").write_text("mine")
    plan = await make_plan(checkpoints, "undo")
    assert (plan.turn_id, plan.restore, plan.delete) == ("two", (), ())
    assert [gap.path for gap in plan.conflicts] == ["two"]


async def test_undone_turn_is_skipped(two_turns):
    root, checkpoints = two_turns
    await checkpoints.undo(await make_plan(checkpoints, "undo"))
    (root / "two").write_text("mine")
    assert (await make_plan(checkpoints, "undo")).turn_id == "one"


async def test_redone_turn_can_be_undone_again(two_turns):
    root, checkpoints = two_turns
    await checkpoints.undo(await make_plan(checkpoints, "undo"))
    await checkpoints.undo(await make_plan(checkpoints, "redo"))
    (root / "two").write_text("mine")
    assert (await make_plan(checkpoints, "undo")).turn_id == "two"


async def test_files_deleted_by_the_user_are_not_redone(two_turns):
    root, checkpoints = two_turns
    (root / "two").unlink()
    with pytest.raises(UsageError, match="nothing to redo"):
        await make_plan(checkpoints, "redo")


async def test_only_turns_of_the_session_are_offered(tmp_path):
    root = tmp_path / "work"
    root.mkdir()
    checkpoints = Checkpoints(str(root), str(tmp_path / "store"))
    for turn in ("a/1", "a/2", "b/1"):
        await checkpoints.begin(turn)
        (root / turn.replace("/", "-")).write_text("made")
        await checkpoints.finish(turn)
    assert (await make_plan(checkpoints, "undo", "", "a")).turn_id == "a/2"
    for session in ("c", "a/", "A"):
        with pytest.raises(UsageError, match="nothing to undo in session") as error:
            await make_plan(checkpoints, "undo", "", session)
        assert "`ostler undo b/1`" in str(error.value)
    await checkpoints.undo(await make_plan(checkpoints, "undo", "", "b"))
    with pytest.raises(UsageError, match="nothing to redo in session a"):
        await make_plan(checkpoints, "redo", "", "a")
    assert (await make_plan(checkpoints, "redo", "", "b")).turn_id == "b/1"
    checkpoints.close()
