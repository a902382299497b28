"""Which turn `undo` and `redo` mean when none is named."""

import pytest

from ostler.app.undo import make_plan, open_checkpoints
from ostler.core.errors import UsageError
from ostler.workspace.checkpoints import Checkpoints

pytestmark = pytest.mark.req("EN-13")


@pytest.fixture
async def two_turns(tmp_path):
    """Two turns, each of which made one file."""
    root = tmp_path / "work"
    root.mkdir()
    past = Checkpoints(str(root), str(tmp_path / "store"))
    for turn in ("one", "two"):
        await past.begin(turn)
        (root / turn).write_text("made")
        await past.finish(turn)
    yield root, past
    past.close()


async def test_what_ostler_itself_keeps_is_no_work_of_a_turn(tmp_path, monkeypatch):
    """Started in a home, its own journals lie in the workspace."""
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / ".ostler" / "projects" / "p"
    (folder / "sessions").mkdir(parents=True)
    past = open_checkpoints(tmp_path, folder)
    assert (await past.begin("t")).uncovered == ()
    (folder / "sessions" / "journal.jsonl").write_text("said")
    (tmp_path / "made").write_text("by the turn")
    assert [change.path for change in (await past.finish("t")).changed] == ["made"]
    past.close()


async def test_a_turn_of_which_everything_was_changed_since_is_not_passed_over(two_turns):
    root, past = two_turns
    (root / "two").write_text("mine")
    plan = await make_plan(past, "undo")
    assert (plan.turn_id, plan.restore, plan.delete) == ("two", (), ())
    assert [gap.path for gap in plan.conflicts] == ["two"]


async def test_a_turn_that_was_undone_is_passed_over_whatever_was_done_to_its_files_since(two_turns):
    root, past = two_turns
    await past.undo(await make_plan(past, "undo"))
    (root / "two").write_text("mine")
    assert (await make_plan(past, "undo")).turn_id == "one"


async def test_a_turn_that_was_done_again_stands_again(two_turns):
    root, past = two_turns
    await past.undo(await make_plan(past, "undo"))
    await past.redo(await make_plan(past, "redo"))
    (root / "two").write_text("mine")
    assert (await make_plan(past, "undo")).turn_id == "two"


async def test_what_a_person_took_away_is_not_for_redo(two_turns):
    root, past = two_turns
    (root / "two").unlink()
    with pytest.raises(UsageError, match="nothing to redo"):
        await make_plan(past, "redo")
