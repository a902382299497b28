"""How many threads the embedded model computes with: they spin while they wait, so too many are slower than few."""

import os


def choose_threads(cores: int, load: float) -> int:
    """What the load leaves of the cores, never all of them, one at least."""
    return max(1, min(cores - 1, round(cores - load)))


def default_threads() -> int:
    """For this machine as it is."""
    usable = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    return choose_threads(len(usable), os.getloadavg()[0])
