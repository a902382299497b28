"""Chooses the number of threads for inference. Threads spin while waiting, so too many are slower than few."""

import os


def choose_threads(cores: int, load: float) -> int:
    """Return the number of cores that are not loaded: at least one, and one less than all."""
    return max(1, min(cores - 1, round(cores - load)))


def default_threads() -> int:
    """Return the number of threads for this machine and its current load."""
    usable = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    return choose_threads(len(usable), os.getloadavg()[0])
