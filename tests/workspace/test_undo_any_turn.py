"""Whatever a turn does to a tree, the tree is the same again after undo, and after redo as the turn left it."""

import asyncio
import os
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ostler.workspace.checkpoints import Checkpoints

NAMES = st.sampled_from(["a", "b", "a/c", "a/d", "b/c", "a/c/e", "a-", "a/c/f"])
DEEDS = st.one_of(
    st.tuples(st.just("write"), NAMES, st.sampled_from(["", "x", "y" * 300, "z\n"])),
    st.tuples(st.just("remove"), NAMES),
    st.tuples(st.just("folder"), NAMES),
    # a later write follows the link, as whoever runs the tests: what lies outside must bear it
    st.tuples(st.just("link"), NAMES, st.sampled_from(["a", "b/c", "nowhere", "/dev/null"])),
    st.tuples(st.just("move"), NAMES, NAMES),
    st.tuples(st.just("mode"), NAMES, st.sampled_from([0o600, 0o755, 0o644])),
    st.tuples(st.just("share"), NAMES, NAMES),
)


def do(root: str, deed: tuple) -> None:
    path = os.path.join(root, deed[1])
    kind, *rest = deed[0], *deed[2:]
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


def picture(root: str) -> dict[str, tuple[int, bytes]]:
    found = {}
    for folder, folders, names in os.walk(root):
        for name in [*folders, *names]:
            path = Path(folder, name)
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode):
                held = os.fsencode(os.readlink(path))
            else:
                held = path.read_bytes() if stat.S_ISREG(mode) else b""
            found[str(path.relative_to(root))] = (mode, held)
    return found


TURNS = given(st.lists(DEEDS, max_size=12), st.lists(DEEDS, min_size=1, max_size=10), st.lists(DEEDS, max_size=6))


@pytest.mark.req("EN-13")
@settings(max_examples=50, deadline=None)
@TURNS
def test_any_two_turns_are_undone_and_redone_in_order(standing, one, two):
    undone_and_redone(standing, one, two)


@pytest.mark.slow
@pytest.mark.req("EN-13")
@settings(max_examples=600, deadline=None)
@TURNS
def test_many_more_turns_are_undone_and_redone_in_order(standing, one, two):
    undone_and_redone(standing, one, two)


def undone_and_redone(standing, one, two):
    async def scene(root: str, store: str) -> None:
        past = Checkpoints(root, store)
        pictures = [picture(root)]
        for turn, deeds in (("one", one), ("two", two)):
            await past.begin(turn)
            for deed in deeds:
                do(root, deed)
            await past.finish(turn)
            pictures.append(picture(root))
        for turn, wanted in (("two", 1), ("one", 0)):
            plan = await past.plan_undo(turn)
            assert (plan.conflicts, plan.uncovered) == ((), ())
            assert (await past.undo(plan)).skipped == ()
            assert picture(root) == pictures[wanted]
        for turn, wanted in (("one", 1), ("two", 2)):
            plan = await past.plan_redo(turn)
            assert (plan.conflicts, plan.uncovered) == ((), ())
            assert (await past.redo(plan)).skipped == ()
            assert picture(root) == pictures[wanted]
        past.close()

    with tempfile.TemporaryDirectory() as base:
        root = os.path.join(base, "work")
        os.makedirs(root)
        for deed in standing:
            do(root, deed)
        asyncio.run(scene(root, os.path.join(base, "store")))
