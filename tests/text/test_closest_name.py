"""A mistyped name gets the closest known name, an unrelated one gets none."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostler.text.closest_name import closest_name

KNOWN = ["config", "context", "compact", "model", "models", "help", "quit", "security_mode"]


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("confg", "config"),
        ("conifg", "config"),
        ("CONFIG", "config"),
        ("modle", "model"),
        ("models", "models"),
        ("hlep", "help"),
        ("secuirty_mode", "security_mode"),
        ("zzzzzz", None),
        ("x", None),
        ("", None),
        ("a" * 1000, None),
    ],
)
def test_closest_name(word, expected):
    assert closest_name(word, KNOWN) == expected


def test_no_known_names():
    assert closest_name("word", []) is None


def test_order_of_the_names_does_not_matter():
    assert closest_name("modeX", KNOWN) == closest_name("modeX", reversed(KNOWN))


@given(st.text(max_size=50), st.lists(st.text(max_size=50), max_size=5))
def test_result_is_a_known_name(word, known):
    assert closest_name(word, known) in {None, *known}


@pytest.mark.slow
def test_many_long_names_take_bounded_time():
    started = time.perf_counter()
    closest_name("a" * 40, (f"{'b' * 36}{number:06}" for number in range(10**9)))
    assert time.perf_counter() - started < 20
