"""Compares two texts by line and by word."""

import re
from typing import Literal

import msgspec

from ostler.text.hunks import split_lines
from ostler.text.matching import MatchingBlock, matching_blocks
from ostler.text.truncate import omission_marker

DiffOp = Literal["same", "removed", "added"]

_MAX_WORDS = 256


class Diff(msgspec.Struct, frozen=True):
    """A unified diff. The counts are for the whole change, even if the text is truncated."""

    text: str
    additions: int
    deletions: int
    truncated: bool


def unified_diff(before: str, after: str, path: str, *, context: int = 3, max_lines: int | None = None) -> Diff:
    """Create a unified diff; an empty text is treated as a missing file."""
    if before == after:
        return Diff("", additions=0, deletions=0, truncated=False)
    old, new = split_lines(before), split_lines(after)
    blocks = matching_blocks(old, new)
    same = sum(size for _, _, size in blocks)
    output = [f"--- {_file_label('a', path, before)}\n", f"+++ {_file_label('b', path, after)}\n"]
    height = len(output)
    for hunk in _group_hunks(blocks, len(old), len(new), context):
        output += _format_hunk(hunk, old, new, None if max_lines is None else max(max_lines - height, 0))
        height += _line_count(hunk)
    omitted = height - max_lines if max_lines is not None else 0
    if omitted > 0:
        output[max_lines:] = [omission_marker(omitted, "lines of the diff") + "\n"]
    return Diff("".join(output), additions=len(new) - same, deletions=len(old) - same, truncated=omitted > 0)


def word_diff(old_line: str, new_line: str) -> list[tuple[DiffOp, str]]:
    """Compare two lines by word. Lines that are too long are returned as completely replaced."""
    old, new = _split_words(old_line), _split_words(new_line)
    blocks = matching_blocks(old, new) if max(len(old), len(new)) <= _MAX_WORDS else []
    parts: list[tuple[DiffOp, str]] = []
    old_end = new_end = 0
    for start_old, start_new, size in [*blocks, (len(old), len(new), 0)]:
        parts.append(("removed", "".join(old[old_end:start_old])))
        parts.append(("added", "".join(new[new_end:start_new])))
        parts.append(("same", "".join(old[start_old : start_old + size])))
        old_end, new_end = start_old + size, start_new + size
    return [(op, text) for op, text in parts if text]


def _split_words(line: str) -> list[str]:
    return re.findall(r"\w+|\s+|[^\w\s]", line)


def _file_label(side: str, path: str, text: str) -> str:
    if not text:
        return "/dev/null"
    name = f"{side}/{path}"
    if not any(char < " " or char in '"\\\x7f' for char in name):
        return name
    # A line feed in a file name must not start a new line of the diff.
    escaped = "".join(f"\\{ord(c):03o}" if c < " " or c == "\x7f" else "\\" + c if c in '"\\' else c for c in name)
    return f'"{escaped}"'


def _group_hunks(blocks: list[MatchingBlock], old_size: int, new_size: int, context: int) -> list[list[MatchingBlock]]:
    """Group the matching blocks into hunks; each hunk is a list of equal runs around changes, with context."""
    hunks: list[list[MatchingBlock]] = []
    current: list[MatchingBlock] = []
    runs = blocks if blocks and blocks[0][:2] == (0, 0) else [(0, 0, 0), *blocks]
    end_left, end_right, end_size = runs[-1]
    if (end_left + end_size, end_right + end_size) != (old_size, new_size):
        runs = [*runs, (old_size, new_size, 0)]
    for index, (left, right, size) in enumerate(runs):
        last = index == len(runs) - 1
        if not current:
            skip = max(size - context, 0)
            current = [(left + skip, right + skip, size - skip)]
        elif last or size > 2 * context:
            hunks.append([*current, (left, right, min(size, context))])
            skip = max(size - context, 0)
            current = [(left + skip, right + skip, size - skip)]
        else:
            current.append((left, right, size))
    return hunks


def _line_count(hunk: list[MatchingBlock]) -> int:
    """Return the number of lines of a formatted hunk."""
    (start_old, start_new, _), (last_old, last_new, last_size) = hunk[0], hunk[-1]
    same = sum(size for _, _, size in hunk)
    return 1 + last_old + last_size - start_old + last_new + last_size - start_new - same


def _format_hunk(hunk: list[MatchingBlock], old: list[str], new: list[str], max_lines: int | None) -> list[str]:
    """Format a hunk as lines: the header, and other lines up to `max_lines`."""
    start_old, start_new, _ = hunk[0]
    last_old, last_new, last_size = hunk[-1]
    old_count, new_count = last_old + last_size - start_old, last_new + last_size - start_new
    output = [f"@@ -{_format_range(start_old, old_count)} +{_format_range(start_new, new_count)} @@\n"]
    old_end, new_end = start_old, start_new
    for left, right, size in hunk:
        for sign, lines, first, last in (
            ("-", old, old_end, left),
            ("+", new, new_end, right),
            (" ", old, left, left + size),
        ):
            end = last if max_lines is None else min(last, first + max(max_lines - len(output), 0))
            output += [_format_line(sign, line) for line in lines[first:end]]
        old_end, new_end = left + size, right + size
    return output


def _format_range(start: int, count: int) -> str:
    if count == 1:
        return str(start + 1)
    return f"{start + 1 if count else start},{count}"


def _format_line(sign: str, line: str) -> str:
    return f"{sign}{line}" if line.endswith("\n") else f"{sign}{line}\n\\ No newline at end of file\n"
