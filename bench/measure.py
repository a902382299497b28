"""Running a program and counting what it cost: CPU of the tree, wall, peak memory."""

import os
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec


class RunCost(msgspec.Struct, frozen=True):
    """One run, or the median of several."""

    cpu_ms: float
    wall_ms: float
    rss_mb: float
    status: int
    output: str = ""


def run(
    argv: Sequence[str], env: Mapping[str, str], cwd: str, on_start: Callable[[int], None] | None = None
) -> RunCost:
    """One run to its end."""
    begun = time.perf_counter()
    with subprocess.Popen(
        argv, env=dict(env), cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        if on_start:
            on_start(process.pid)
        output = process.stdout.read() if process.stdout else b""
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    wall = (time.perf_counter() - begun) * 1000
    cpu = (usage.ru_utime + usage.ru_stime) * 1000
    return RunCost(cpu, wall, usage.ru_maxrss / 1024, process.returncode, output.decode(errors="replace"))


def median(runs: Sequence[RunCost]) -> RunCost:
    """CPU as the least, since noise only adds; the others as medians."""
    return RunCost(
        min(cost.cpu_ms for cost in runs),
        statistics.median(cost.wall_ms for cost in runs),
        statistics.median(cost.rss_mb for cost in runs),
        max(cost.status for cost in runs),
        runs[-1].output,
    )
