"""Undo in growing workspaces: an edit, the first command and a later command, compared with git in the same tree."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

Row = tuple[str, str, str, str]
EDIT_BUDGET_S, GIT_RATIO_BUDGET, MEMORY_BUDGET_MB = 0.3, 2.0, 100.0
REPEATS = 3
# One turn in a new process: the wait before the effect and, after a final reply of one second, at the end of the turn.
# The kind is "edit", "command", or "instant" for a command without the final reply.
TURN_SCRIPT = """
import asyncio, json, resource, sys, time
from pathlib import Path
from ostler.workspace.checkpoints import Checkpoints
root, store, turn, kind = sys.argv[1:]
async def main():
    checkpoints, file = Checkpoints(root, store), "folder-0/file-0.txt"
    started = time.perf_counter()
    await checkpoints.begin(turn, files_only=kind == "edit")
    if kind == "edit":
        await checkpoints.save_before([file])
    waited = time.perf_counter() - started
    checkpoints.heartbeat(turn)
    (Path(root) / file).write_text(turn)
    checkpoints.mark_idle(turn)
    await asyncio.sleep(0.0 if kind == "instant" else 1.0)
    ending = time.perf_counter()
    await checkpoints.finish(turn)
    waited += time.perf_counter() - ending
    checkpoints.close()
    print(json.dumps([waited, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
asyncio.run(main())
"""


def rows(sizes: tuple[int, ...]) -> Iterator[Row]:
    """Yield Markdown rows: measurement, Ostler, comparison, budget."""
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="ostler-bench-") as folder:
            yield from _size_rows(Path(folder), size)


def _size_rows(folder: Path, size: int) -> Iterator[Row]:
    root, store = folder / "work", folder / "store"
    _make_tree(root, size)
    _git(root, "init", "-q")
    add = _git(root, "add", "-A")
    first, first_memory = _turn(root, store, "first", "command")
    ratio = first / add
    yield (
        f"first command among {size:,} files",
        f"waits {first:.2f} s, {first_memory:.0f} MB",
        f"{ratio:.1f} × `git add -A`",
        _verdict(
            ratio <= GIT_RATIO_BUDGET and first_memory <= MEMORY_BUDGET_MB,
            f"{GIT_RATIO_BUDGET:g} ×, {MEMORY_BUDGET_MB:g} MB",
        ),
    )
    status = min(_git(root, "status", "--short") for _ in range(REPEATS))
    later = [_turn(root, store, f"later {number}", "command") for number in range(REPEATS)]
    waited, memory = min(cost[0] for cost in later), max(cost[1] for cost in later)
    instant = min(_turn(root, store, f"instant {number}", "instant")[0] for number in range(REPEATS))
    edit, edit_memory = min(_turn(root, store, f"edit {number}", "edit") for number in range(REPEATS))
    ratio = (waited - edit) / status  # without the fixed cost of opening the store
    yield (
        f"later command among {size:,} files",
        f"waits {waited:.2f} s, {memory:.0f} MB",
        f"the scans take {ratio:.1f} × `git status`; "
        f"{(instant - edit) / status:.1f} × if the final reply takes no time",
        _verdict(
            ratio <= GIT_RATIO_BUDGET and memory <= MEMORY_BUDGET_MB, f"{GIT_RATIO_BUDGET:g} ×, {MEMORY_BUDGET_MB:g} MB"
        ),
    )
    yield (
        f"edit of one file among {size:,} files",
        f"waits {edit * 1000:.0f} ms, {edit_memory:.0f} MB",
        f"{edit / status:.1f} × `git status`",
        _verdict(edit <= EDIT_BUDGET_S, f"{EDIT_BUDGET_S:g} s"),
    )


def _make_tree(root: Path, size: int) -> None:
    for number in range(size):
        if number % 100 == 0:
            place = root / f"folder-{number // 100}"
            place.mkdir(parents=True)
        (place / f"file-{number}.txt").write_text(f"file {number}\n")


def _git(root: Path, *arguments: str) -> float:
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    started = time.perf_counter()
    subprocess.run(["git", *arguments], cwd=root, env=env, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def _turn(root: Path, store: Path, name: str, kind: str) -> tuple[float, float]:
    """Run a turn and return the seconds it waited and the peak memory in megabytes."""
    argv = [sys.executable, "-c", TURN_SCRIPT, str(root), str(store), name, kind]
    waited, memory = json.loads(subprocess.run(argv, check=True, stdout=subprocess.PIPE).stdout)
    return waited, memory


def _verdict(within: bool, budget: str) -> str:
    return f"{'within' if within else '**over**'} {budget}"
