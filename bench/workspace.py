"""Workspace and policy: analysing a command, reading and writing a file, describing many files."""

import asyncio
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

from ostler.app.zero_context import describe_workspace
from ostler.policy.shell import analyse
from ostler.settings.run_options import RunOptions
from ostler.workspace.local_workspace import LocalWorkspace

Row = tuple[str, str, str, str]
COMMAND_LINES = (
    "ls -la src",
    "git status --short",
    "grep -rn TODO src | head -20",
    "python3 -m pytest -q tests",
    "make test",
)


def rows() -> Iterator[Row]:
    """Yield Markdown rows: measurement, Ostler, comparison, budget."""
    yield _classify_row()
    with tempfile.TemporaryDirectory(prefix="ostler-bench-") as folder:
        yield from asyncio.run(_file_rows(Path(folder)))
    with tempfile.TemporaryDirectory(prefix="ostler-bench-") as folder:
        _make_many_files(Path(folder))
        yield asyncio.run(_description_row(folder))


def _best_us(work: Callable[[], object], times: int) -> float:
    """Return the minimum time of several runs, in microseconds."""
    least = float("inf")
    for _ in range(times):
        started = time.perf_counter()
        work()
        least = min(least, time.perf_counter() - started)
    return least * 1e6


def _classify_row() -> Row:
    def all_lines() -> None:
        for line in COMMAND_LINES:
            analyse(line, cwd="/")

    all_lines()
    each = _best_us(all_lines, 20) / len(COMMAND_LINES)
    verdict = "within" if each <= 1000 else "**over**"
    return ("analyse an ordinary command line", f"{each:.0f} µs", f"{1e6 / each:,.0f} a second", f"{verdict} 1 ms")


async def _file_rows(folder: Path) -> list[Row]:
    workspace, file = LocalWorkspace(str(folder)), folder / "small.txt"
    file.write_text("a line of text\n" * 50)
    plain_read = _best_us(lambda: file.read_text(), 200)
    read = await _best_async_us(lambda: workspace.read_text("small.txt"), 200)
    plain_write = _best_us(lambda: (folder / "plain.txt").write_text("x\n" * 50), 50)
    count = iter(range(10_000))
    write = await _best_async_us(lambda: workspace.write_text(f"new-{next(count)}.txt", "x\n" * 50), 50)
    workspace.close()
    return [
        ("read a small file", f"{read:.0f} µs", f"{read / plain_read:.1f} × plain Python", ""),
        ("write and sync a small file", f"{write:.0f} µs", f"plain Python {plain_write:.0f} µs, not synced", ""),
    ]


def _make_many_files(folder: Path) -> None:
    """Write 50,000 files into a repository that does not track them yet."""
    for number in range(500):
        place = folder / f"package{number // 50}" / f"module{number}"
        place.mkdir(parents=True)
        for name in range(100):
            (place / f"file{name}.py").touch()
    subprocess.run(["git", "init", "-q", str(folder)], check=True)


async def _description_row(folder: str) -> Row:
    """Measure what `ostler zero context` does."""
    options = RunOptions(folder)
    each = await _best_async_us(lambda: describe_workspace(options, interactive=True), 3) / 1000
    verdict = "within" if each <= 300 else "**over**"
    return ("describe 50,000 files to Agent Zero", f"{each:.0f} ms", "", f"{verdict} 300 ms")


async def _best_async_us(work: Callable[[], Awaitable[object]], times: int) -> float:
    least = float("inf")
    for _ in range(times):
        started = time.perf_counter()
        await work()
        least = min(least, time.perf_counter() - started)
    return least * 1e6
