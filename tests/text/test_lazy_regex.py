"""An expression that waits for its first use does what a compiled one does."""

import re

import pytest

from ostler.text.lazy_regex import lazy_regex


def test_it_is_used_as_a_compiled_one():
    word = lazy_regex(r"(?P<first>[a-z])\w*")
    assert word.fullmatch("abc")["first"] == "a"
    assert word.sub("-", "ab cd") == "- -"
    assert word.findall("ab cd") == ["a", "c"]
    assert (word.pattern, word.groups) == (r"(?P<first>[a-z])\w*", 1)


def test_flags_and_bytes():
    assert lazy_regex("^b", re.MULTILINE | re.IGNORECASE).search("a\nB")
    assert lazy_regex(rb"\d+").findall(b"1 22") == [b"1", b"22"]


def test_nothing_is_compiled_before_it_is_used():
    wrong = lazy_regex("(")
    with pytest.raises(re.error):
        wrong.search("x")
