"""Which part of a large set of cases runs in the fast suite. `./run test --slow` runs all of it."""

import os
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import settings

TIER = os.environ.get("OSTLER_TESTS_TIER", "fast")  # set by `tasks.test`: fast, sample or slow

settings.register_profile("fast", max_examples=20, deadline=None, derandomize=True)  # the same examples in every run
settings.register_profile("slow", max_examples=200, deadline=None)
settings.load_profile("slow" if TIER == "slow" else "fast")


def examples(count: int, **options: Any) -> settings:
    """Return the settings of a property test: `count` random examples in the slow tier, otherwise 10 to 50."""
    return settings(max_examples=count if TIER == "slow" else min(max(count // 10, 10), 50), **options)


def amount(fast: int, slow: int) -> int:
    """Return the size of a large input or how often a stress test repeats its work."""
    return slow if TIER == "slow" else fast


def slow(*values: Any, **options: Any) -> Any:
    """Return a parametrised case that belongs to the slow tier."""
    return pytest.param(*values, marks=pytest.mark.slow, **options)


def mark_slow_cases(items: Iterable[pytest.Item]) -> None:
    """Mark the cases of tests with the mark `sampled` as slow, except some in which each value of a parameter occurs.

    `sampled(every=n)` leaves only one in n of these to the fast suite.
    """
    tests: dict[str, list[Any]] = {}
    for item in items:
        if item.get_closest_marker("sampled"):
            tests.setdefault(_test_name(item), []).append(item)
    for cases in tests.values():
        every = cases[0].get_closest_marker("sampled").kwargs.get("every", 1)
        values = [list(dict.fromkeys(ids)) for ids in zip(*(item.callspec._idlist for item in cases), strict=True)]
        longest = max(range(len(values)), key=lambda number: len(values[number]))
        for item in cases:
            indexes = [ids.index(name) for ids, name in zip(values, item.callspec._idlist, strict=True)]
            position = indexes[longest]
            is_fast = all(index == position % len(ids) for index, ids in zip(indexes, values, strict=True))
            if position % every or not is_fast:
                item.add_marker(pytest.mark.slow)


def select_sample(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Return the first case of each slow test."""
    first: dict[str, pytest.Item] = {}
    for item in items:
        if item.get_closest_marker("slow"):
            first.setdefault(_test_name(item), item)
    return list(first.values())


def _test_name(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]
