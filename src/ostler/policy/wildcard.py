"""Does a rule's pattern fit? `*` is any run, `/` and newlines included; `?` is one character; the rest is literal."""

import os
import re


def matches(pattern: str, subject: str) -> bool:
    """Whole-string match; a pattern that ends in ` *` also fits without arguments."""
    pattern = _expand_home(pattern).replace("\\", "/")
    subject = subject.replace("\\", "/")
    if pattern.endswith(" *") and _matches_pattern(pattern[:-2], subject):
        return True
    return _matches_pattern(pattern, subject)


def pattern_folder(pattern: str) -> str:
    """The path that all a pattern fits lies below, or is; empty where it may be anywhere."""
    whole = _expand_home(pattern)
    fixed = re.split(r"[*?]", whole, maxsplit=1)[0]
    return whole if fixed == whole else fixed.rpartition("/")[0]


def _expand_home(pattern: str) -> str:
    for prefix in ("~/", "$HOME/"):
        if pattern.startswith(prefix):
            return os.path.expanduser("~/") + pattern[len(prefix) :]
    return pattern


def _matches_pattern(pattern: str, subject: str) -> bool:
    """Greedy with one point to fall back to: at worst the product of the lengths, never exponential."""
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
