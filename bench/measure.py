"""Run a program and measure CPU time of the process tree, wall time and peak memory."""

import os
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec


class RunCost(msgspec.Struct, frozen=True):
    """The cost of one run, or of several combined."""

    cpu_ms: float
    wall_ms: float
    rss_mb: float
    status: int
    output: str = ""


def run(
    argv: Sequence[str], env: Mapping[str, str], cwd: str, on_start: Callable[[int], None] | None = None
) -> RunCost:
    """Run a program to its end and measure it."""
    started = time.perf_counter()
    with subprocess.Popen(
        argv, env=dict(env), cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        if on_start:
            on_start(process.pid)
        output = process.stdout.read() if process.stdout else b""
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    wall = (time.perf_counter() - started) * 1000
    cpu = (usage.ru_utime + usage.ru_stime) * 1000
    return RunCost(cpu, wall, usage.ru_maxrss / 1024, process.returncode, output.decode(errors="replace"))


def median(runs: Sequence[RunCost]) -> RunCost:
    """Combine several runs: the minimum of CPU, because noise only adds, and the medians of the others."""
    return RunCost(
        min(cost.cpu_ms for cost in runs),
        statistics.median(cost.wall_ms for cost in runs),
        statistics.median(cost.rss_mb for cost in runs),
        max(cost.status for cost in runs),
        runs[-1].output,
    )
