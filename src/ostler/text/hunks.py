"""Splits a unified diff into hunks and applies a selection of them."""

from collections.abc import Container
from itertools import pairwise

from ostler.text.lazy_regex import lazy_regex

_HUNK_HEADER = lazy_regex(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@")


def split_hunks(diff: str) -> list[str]:
    """Return the hunks with their `@@` lines. A diff without hunks (a renamed file) has a single empty one."""
    lines = split_lines(diff)
    starts = [start for start, line in enumerate(lines) if line.startswith("@@ ")]
    return ["".join(lines[start:end]) for start, end in pairwise([*starts, len(lines)])] or [""]


def apply_selected_hunks(before: str, diff: str, selected: Container[int]) -> str:
    """Apply the selected hunks (numbered from 1) to a text. Raises `ValueError` if the diff does not match it."""
    old, result, pos = split_lines(before), list[str](), 0
    for number, hunk in enumerate(split_hunks(diff), 1):
        header = _HUNK_HEADER.match(hunk)
        if header is None or number not in selected:
            continue
        removed, added = _hunk_sides(hunk)
        start = int(header[1]) - (header[2] != "0")
        if old[start : start + len(removed)] != removed:
            raise ValueError("the diff does not match the text")
        result += [*old[pos:start], *added]
        pos = start + len(removed)
    return "".join([*result, *old[pos:]])


def _hunk_sides(hunk: str) -> tuple[list[str], list[str]]:
    """Return the lines of a hunk before and after the change."""
    sides: dict[str, list[str]] = {"-": [], "+": []}
    last_sides = ""
    for line in split_lines(hunk)[1:]:
        sign, text = line[:1], line[1:]
        if sign == "\\":  # the previous line has no newline
            for side in last_sides:
                sides[side][-1] = sides[side][-1].removesuffix("\n")
            continue
        last_sides = sign if sign in sides else "-+"
        for side in last_sides:
            sides[side].append(text)
    return sides["-"], sides["+"]


def split_lines(text: str) -> list[str]:
    """Split text into lines with their line ends; only a line feed ends a line."""
    lines = text.split("\n")
    last = lines.pop()
    return [f"{line}\n" for line in lines] + ([last] if last else [])
