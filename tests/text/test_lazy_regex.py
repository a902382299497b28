"""A lazy regular expression behaves like a compiled one."""

import re

import pytest

from ostler.text.lazy_regex import lazy_regex, linear_regex


def test_behaves_like_a_compiled_pattern():
    word = lazy_regex(r"(?P<first>[a-z])\w*")
    assert word.fullmatch("abc")["first"] == "a"
    assert word.sub("-", "ab cd") == "- -"
    assert word.findall("ab cd") == ["a", "c"]
    assert (word.pattern, word.groups) == (r"(?P<first>[a-z])\w*", 1)


def test_flags_and_bytes():
    assert lazy_regex("^b", re.MULTILINE | re.IGNORECASE).search("a\nB")
    assert lazy_regex(rb"\d+").findall(b"1 22") == [b"1", b"22"]


def test_pattern_is_compiled_on_first_use():
    invalid = lazy_regex("(")
    with pytest.raises(re.error):
        invalid.search("x")


def test_half_of_a_surrogate_pair_is_one_character_of_a_linear_pattern():
    text = "é\ud83d x-1 \ude00"
    pattern = linear_regex(r"X-\d", ignore_case=True)
    assert [match.span() for match in pattern.finditer(text)] == [(3, 6)]
    assert pattern.search(text) and not pattern.fullmatch(text)
    assert linear_regex("..", ignore_case=False).fullmatch("é\ud83d")
