"""The hunks of a unified diff: told apart, and some of them made without the others."""

from collections.abc import Container
from itertools import pairwise

from ostler.text.lazy_regex import lazy_regex

_HUNK_HEADER = lazy_regex(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@")


def split_hunks(diff: str) -> list[str]:
    """Each with its `@@` line; a change without any, as a new name is, counts as one and is empty."""
    lines = _split_lines(diff)
    starts = [at for at, line in enumerate(lines) if line.startswith("@@ ")]
    return ["".join(lines[at:end]) for at, end in pairwise([*starts, len(lines)])] or [""]


def apply_selected_hunks(before: str, diff: str, selected: Container[int]) -> str:
    """The text with only those hunks of its diff made, counted from 1; `ValueError` where the diff is not its own."""
    old, made, at = _split_lines(before), list[str](), 0
    for number, hunk in enumerate(split_hunks(diff), 1):
        head = _HUNK_HEADER.match(hunk)
        if head is None or number not in selected:
            continue
        removed, added = _hunk_sides(hunk)
        start = int(head[1]) - (head[2] != "0")
        if old[start : start + len(removed)] != removed:
            raise ValueError("the diff is of another text")
        made += [*old[at:start], *added]
        at = start + len(removed)
    return "".join([*made, *old[at:]])


def _hunk_sides(hunk: str) -> tuple[list[str], list[str]]:
    """The lines a hunk stands for, before and after it."""
    sides: dict[str, list[str]] = {"-": [], "+": []}
    last = ""
    for line in _split_lines(hunk)[1:]:
        sign, text = line[:1], line[1:]
        if sign == "\\":  # the line before has no end
            for side in last:
                sides[side][-1] = sides[side][-1].removesuffix("\n")
            continue
        last = sign if sign in sides else "-+"
        for side in last:
            sides[side].append(text)
    return sides["-"], sides["+"]


def _split_lines(text: str) -> list[str]:
    """Lines with their ends; only a line feed ends one."""
    lines = text.split("\n")
    last = lines.pop()
    return [f"{line}\n" for line in lines] + ([last] if last else [])
