"""Matches the user's blacklist and danger patterns, in linear time where re2 is installed."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from ostler.text.lazy_regex import linear_regex

_MAX_RE_LENGTH = 4096


def first_match(patterns: Sequence[str], lines: Sequence[str]) -> str:
    """Return the first pattern that matches one of the lines, or an empty string. Case is ignored."""
    for pattern in patterns:
        search = _compile_search(pattern)
        if any(search(line) for line in lines):
            return pattern
    return ""


@lru_cache(maxsize=256)
def _compile_search(pattern: str) -> Any:
    """Return a search function for a pattern; an invalid regular expression is searched as plain text."""
    try:
        return linear_regex(pattern, ignore_case=True).search
    except (ImportError, ValueError):  # without re2, or not in its syntax
        return _compile_re_search(pattern)


def _compile_re_search(pattern: str) -> Any:
    try:
        compiled = re.compile(pattern, re.IGNORECASE)
    except re.error:
        folded = pattern.casefold()
        return lambda line: folded in line.casefold()
    # `re` can take exponential time, so a longer line is not searched but treated as a match
    return lambda line: len(line) > _MAX_RE_LENGTH or compiled.search(line)
