"""Property tests: undo restores any tree, and redo restores the result of any turn."""

import asyncio
import os
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tiers import examples

from ostler.workspace.checkpoints import Checkpoints

NAMES = st.sampled_from(["a", "b", "a/c", "a/d", "b/c", "a/c/e", "a-", "a/c/f"])
ACTIONS = st.one_of(
    st.tuples(st.just("write"), NAMES, st.sampled_from(["", "x", "y" * 300, "z\n"])),
    st.tuples(st.just("remove"), NAMES),
    st.tuples(st.just("folder"), NAMES),
    # a later write follows the symlink, so targets outside must tolerate writes
    st.tuples(st.just("link"), NAMES, st.sampled_from(["a", "b/c", "nowhere", "/dev/null"])),
    st.tuples(st.just("move"), NAMES, NAMES),
    st.tuples(st.just("mode"), NAMES, st.sampled_from([0o600, 0o755, 0o644])),
    st.tuples(st.just("share"), NAMES, NAMES),
)


def perform(root: str, action: tuple) -> None:
    path = os.path.join(root, action[1])
    kind, *rest = action[0], *action[2:]
    with suppress(OSError, shutil.Error):
        if kind == "write":
            Path(path).write_text(rest[0])
        elif kind == "remove":
            shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
        elif kind == "folder":
            os.makedirs(path)
        elif kind == "link":
            os.symlink(rest[0], path)
        elif kind == "move":
            os.rename(path, os.path.join(root, rest[0]))
        elif kind == "mode" and not os.path.islink(path):
            os.chmod(path, rest[0] | (0o700 if os.path.isdir(path) else 0))
        elif kind == "share":
            os.link(path, os.path.join(root, rest[0]), follow_symlinks=False)


def snapshot(root: str) -> dict[str, tuple[int, bytes]]:
    found = {}
    for folder, folders, names in os.walk(root):
        for name in [*folders, *names]:
            path = Path(folder, name)
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode):
                content = os.fsencode(os.readlink(path))
            else:
                content = path.read_bytes() if stat.S_ISREG(mode) else b""
            found[str(path.relative_to(root))] = (mode, content)
    return found


TURNS = given(st.lists(ACTIONS, max_size=12), st.lists(ACTIONS, min_size=1, max_size=10), st.lists(ACTIONS, max_size=6))


@pytest.mark.req("EN-13")
@examples(50)
@TURNS
def test_two_turns_are_undone_and_redone_in_order(initial, one, two):
    check_undo_and_redo(initial, one, two)


@pytest.mark.slow
@pytest.mark.req("EN-13")
@examples(600)
@TURNS
def test_many_turns_are_undone_and_redone_in_order(initial, one, two):
    check_undo_and_redo(initial, one, two)


def check_undo_and_redo(initial, one, two):
    async def run(root: str, store: str) -> None:
        checkpoints = Checkpoints(root, store)
        snapshots = [snapshot(root)]
        for turn, actions in (("one", one), ("two", two)):
            await checkpoints.begin(turn)
            for action in actions:
                perform(root, action)
            await checkpoints.finish(turn)
            snapshots.append(snapshot(root))
        for turn, index in (("two", 1), ("one", 0)):
            plan = await checkpoints.plan(turn, "undo")
            assert (plan.conflicts, plan.uncovered) == ((), ())
            assert (await checkpoints.undo(plan)).skipped == ()
            assert snapshot(root) == snapshots[index]
        for turn, index in (("one", 1), ("two", 2)):
            plan = await checkpoints.plan(turn, "redo")
            assert (plan.conflicts, plan.uncovered) == ((), ())
            assert (await checkpoints.undo(plan)).skipped == ()
            assert snapshot(root) == snapshots[index]
        checkpoints.close()

    with tempfile.TemporaryDirectory() as base:
        root = os.path.join(base, "work")
        os.makedirs(root)
        for action in initial:
            perform(root, action)
        asyncio.run(run(root, os.path.join(base, "store")))
