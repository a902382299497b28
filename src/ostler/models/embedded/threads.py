"""Chooses the number of threads for inference. Threads spin while waiting, so too many are slower than few."""

import asyncio
import os
from collections.abc import Collection, Mapping

SAMPLE_SECONDS = 0.15
_IDLE_FIELDS = slice(3, 5)  # idle and iowait


def choose_threads(cores: int, idle: float) -> int:
    """Return the number of idle cores, at least one."""
    return max(1, min(cores, round(idle)))


async def free_threads() -> int:
    """Measure for a moment how many cores of this process are idle. Where that is not possible, use the load."""
    usable = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    cores = len(usable)
    before = _read_times(usable)
    if not before:
        return choose_threads(cores, cores - os.getloadavg()[0])
    await asyncio.sleep(SAMPLE_SECONDS)
    return choose_threads(cores, idle_cores(before, _read_times(usable)))


def idle_cores(before: Mapping[str, tuple[int, int]], after: Mapping[str, tuple[int, int]]) -> float:
    """Return how many cores were idle between two readings of idle and total time."""
    idle = 0.0
    for core, (idle_before, total_before) in before.items():
        idle_after, total_after = after.get(core, (idle_before, total_before))
        idle += (idle_after - idle_before) / max(total_after - total_before, 1)
    return idle


def _read_times(cores: Collection[int]) -> dict[str, tuple[int, int]]:
    """Return idle and total time of each core, or nothing if the system does not report them."""
    names = {f"cpu{core}" for core in cores}
    try:
        with open("/proc/stat", encoding="ascii") as file:
            lines = [line.split() for line in file if line.startswith("cpu")]
    except OSError:
        return {}
    times = {line[0]: list(map(int, line[1:9])) for line in lines if line[0] in names}
    return {core: (sum(values[_IDLE_FIELDS]), sum(values)) for core, values in times.items()}
