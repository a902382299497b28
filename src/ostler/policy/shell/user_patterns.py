"""The user's own patterns: regular expressions without case, in time linear in the line where re2 is there."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

_MAX_RE_LENGTH = 4096


def first_match(patterns: Sequence[str], lines: Sequence[str]) -> str:
    """The first pattern that is found in one of the lines, or nothing."""
    for pattern in patterns:
        search = _compile_search(pattern)
        if any(search(line) for line in lines):
            return pattern
    return ""


@lru_cache(maxsize=256)
def _compile_search(pattern: str) -> Any:
    """A search for one pattern; one that is no regular expression is looked for as it stands."""
    try:
        import re2  # a native library, needed only where patterns are set
    except ImportError:
        return _compile_re_search(pattern)
    options = re2.Options()
    options.case_sensitive = False
    options.log_errors = False
    try:
        return re2.compile(pattern, options).search
    except re2.error:
        return _compile_re_search(pattern)


def _compile_re_search(pattern: str) -> Any:
    try:
        compiled = re.compile(pattern, re.IGNORECASE)
    except re.error:
        folded = pattern.casefold()
        return lambda line: folded in line.casefold()
    # this engine may take exponential time: it is shown only so much of a line
    return lambda line: compiled.search(line[:_MAX_RE_LENGTH])
