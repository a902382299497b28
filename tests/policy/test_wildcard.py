"""Patterns and the subjects they match."""

import fnmatch
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostler.policy.wildcard import matches


@pytest.mark.req("PM-1")
@pytest.mark.parametrize(
    ("pattern", "subject", "expected"),
    [
        ("*", "", True),
        ("*", "any/thing\nat all", True),
        ("git *", "git", True),
        ("git *", "git push --force", True),
        ("git *", "gitk", False),
        ("cat *", "cat /etc/x", True),
        ("src/*.py", "src/deep/er/x.py", True),
        ("?at", "cat", True),
        ("?at", "at", False),
        ("a.b", "axb", False),
        ("[ab]", "a", False),
        ("[ab]", "[ab]", True),
        ("rm", "rm -rf x", False),
        ("*.env", ".env", True),
        ("a*b*c", "a-b-b-c", True),
        ("a*b*c", "a-b-b-", False),
        ("dir\\*", "dir/x", True),
    ],
)
def test_patterns(pattern, subject, expected):
    assert matches(pattern, subject) is expected


def test_home_is_expanded(monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    assert matches("~/x/*", "/home/me/x/y")
    assert matches("$HOME/x/*", "/home/me/x/y")


@given(st.text("ab*?", max_size=8), st.text("ab", max_size=10))
def test_agrees_with_fnmatch(pattern, subject):
    assert matches(pattern, subject) == fnmatch.fnmatchcase(subject, pattern)


@pytest.mark.slow
def test_hostile_pattern_takes_bounded_time():
    started = time.process_time()
    assert not matches("*a" * 50 + "*b", "a" * 5000)
    assert time.process_time() - started < 5
