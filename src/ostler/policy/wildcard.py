"""Matches rule patterns: `*` is any text (also `/` and newlines), `?` one character, everything else is literal."""

import os
import re


def matches(pattern: str, subject: str) -> bool:
    """Return whether a pattern matches the whole subject; a trailing ` *` is optional."""
    pattern = _expand_home(pattern).replace("\\", "/")
    subject = subject.replace("\\", "/")
    if pattern.endswith(" *") and _matches_pattern(pattern[:-2], subject):
        return True
    return _matches_pattern(pattern, subject)


def is_literal(pattern: str) -> bool:
    """Return whether a pattern matches only itself, so that it can name one path or command."""
    return set("*?\\").isdisjoint(pattern) and _expand_home(pattern) == pattern


def pattern_folder(pattern: str) -> str:
    """Return the folder (or exact path) that contains all matches of a path pattern, or an empty string."""
    expanded = _expand_home(pattern)
    literal_prefix = re.split(r"[*?]", expanded, maxsplit=1)[0]
    return expanded if literal_prefix == expanded else literal_prefix.rpartition("/")[0]


def _expand_home(pattern: str) -> str:
    for prefix in ("~/", "$HOME/"):
        if pattern.startswith(prefix):
            return os.path.expanduser("~/") + pattern[len(prefix) :]
    return pattern


def _matches_pattern(pattern: str, subject: str) -> bool:
    """Match greedily and backtrack to the last `*` only, so the time is at most the product of the lengths."""
    p = s = 0
    star, resume = -1, 0
    while s < len(subject):
        if p < len(pattern) and pattern[p] == "*":
            star, resume = p, s
            p += 1
        elif p < len(pattern) and pattern[p] in ("?", subject[s]):
            p, s = p + 1, s + 1
        elif star >= 0:
            resume += 1
            p, s = star + 1, resume
        else:
            return False
    return pattern[p:].strip("*") == ""
