"""Builds the error for a text that was not found: closest place and difference."""

import re
from collections.abc import Sequence

from ostler.tools.editing.closest_lines import MAX_COMPARED_LENGTH, ClosestLines, closest_lines, most_similar_part
from ostler.tools.editing.text_lines import TextLines, has_lone_cr, line_number_at

_MAX_SHOWN_LINES = 12
_MAX_SHOWN_WIDTH = 200
_NUMBERED = re.compile(r"[ ]{0,12}\d{1,9}\t")


def no_match_message(path: str, text: str, old: str, new: str) -> str:
    """Return the message for an `old` that is not in a text, with the closest match."""
    lines = TextLines(text, cr_is_newline=has_lone_cr(text))
    if not lines.contents[-1]:
        lines.contents.pop()
    expected = TextLines(old, cr_is_newline=True).contents
    while len(expected) > 1 and not expected[-1].strip():
        expected.pop()
    message = f"{path} does not contain that text"
    cause = _guess_cause(text, old, new)
    if cause:
        message += f"; {cause}"
    if len(expected) == 1 and (partial_match := _partial_match_message(text, old)):
        return f"{message}; {partial_match}"
    closest = closest_lines(lines.contents, expected)
    if closest is None:
        return f"{message}, or anything similar: read it again and copy the text exactly"
    if len(expected) == 1:
        return f"{message}; {_closest_part_message(lines.contents[closest.start], expected[0], closest.start)}"
    return f"{message}; {closest_place_message(lines.contents, expected, closest, 'old')}"


def closest_place_message(contents: Sequence[str], expected: Sequence[str], closest: ClosestLines, name: str) -> str:
    """Return the closest lines with numbers, and the first difference."""
    pairs = [
        (index, contents[closest.start + index] if index < closest.size else "", line)
        for index, line in enumerate(expected)
    ]
    index, actual, wanted = next((pair for pair in pairs if pair[1] != pair[2]), pairs[0])
    number = closest.start + index + 1
    shown = number_lines(contents, closest.start, closest.size, number - 1)
    span = (
        f"line {closest.start + 1}"
        if closest.size == 1
        else f"lines {closest.start + 1}-{closest.start + closest.size}"
    )
    if index >= closest.size:
        return f"the closest match is {span}:\n{shown}\nthe file ends there, where {name} has {_clip(wanted, 0)} next"
    return f"the closest match is {span}:\n{shown}\nline {number} has {_describe_difference(actual, wanted, name)}"


def _closest_part_message(line: str, expected: str, index: int) -> str:
    start, end = most_similar_part(line, expected)
    shown = number_lines([line], 0, 1, 0).replace("     1\t", f"{index + 1:6}\t", 1)
    difference = _describe_difference(line[start:end], expected, "old")
    return f"the closest match is line {index + 1}:\n{shown}\nit has {difference}"


def _describe_difference(actual: str, expected: str, name: str) -> str:
    quoted, other = _quote_difference(actual, expected), _quote_difference(expected, actual)
    return f"{quoted} where {name} has {other}{_difference_kind(actual, expected)}"


def number_lines(contents: Sequence[str], start: int, size: int, focus: int) -> str:
    """Return lines with their numbers, as `read` shows them; of many lines, those around `focus`."""
    first = min(max(focus - _MAX_SHOWN_LINES // 2, start), max(start + size - _MAX_SHOWN_LINES, start))
    last = min(first + _MAX_SHOWN_LINES, start + size)
    return "\n".join(f"{number + 1:6}\t{contents[number][:_MAX_SHOWN_WIDTH]}" for number in range(first, last))


def _difference_kind(actual: str, expected: str) -> str:
    if actual.split() == expected.split():
        return " (only whitespace differs)"
    if actual.casefold() == expected.casefold():
        return " (only upper and lower case differ)"
    same = _normalize_typography(actual) == _normalize_typography(expected)
    return " (only typographic characters differ)" if same else ""


def _normalize_typography(line: str) -> str:
    import unicodedata

    table = str.maketrans("\u2018\u2019\u201c\u201d\u2010\u2011\u2012\u2013\u2014\u2212", "''\"\"------")
    return unicodedata.normalize("NFKC", line.translate(table))


def _quote_difference(line: str, other: str) -> str:
    """Return a line as a quoted string, clipped to where it differs from the other."""
    index = next((i for i, (a, b) in enumerate(zip(line, other, strict=False)) if a != b), min(len(line), len(other)))
    return _clip(line, index)


def _clip(line: str, position: int) -> str:
    if len(line) <= 120:
        return repr(line)
    start = max(min(position - 40, len(line) - 120), 0)
    before, after = "…" if start else "", "…" if start + 120 < len(line) else ""
    return f"{before}{line[start : start + 120]!r}{after}"


def _guess_cause(text: str, old: str, new: str) -> str:
    """Return the likely cause of a failed match, or an empty string."""
    if old.strip() and all(_NUMBERED.match(line) for line in old.split("\n") if line.strip()):
        return "old contains the line numbers that read shows, which are not part of the file"
    if "\\n" in old and "\n" not in old and old.replace("\\n", "\n") in text:
        return "old is escaped once too often: it contains \\n as two characters"
    offset = text.find(new) if len(new) >= 8 else -1
    if offset < 0:
        return ""
    return f"new is already at line {line_number_at(text, offset)}, so this change may have been made before"


def _partial_match_message(text: str, old: str) -> str:
    """Return where a part of a long line starts to differ, or an empty string."""
    low, high = 0, min(len(old), 10_000)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if old[:middle] in text else (low, middle - 1)
    offset = text.find(old[:low])
    if low < 12 or not _in_long_line(text, offset):
        return ""
    line, actual = line_number_at(text, offset), text[offset + low - 10 : offset + low + 60]
    return f"its start is on line {line}, then the file has {actual!r} where old has {old[low - 10 : low + 60]!r}"


def _in_long_line(text: str, offset: int) -> bool:
    end = text.find("\n", offset)
    return (end if end >= 0 else len(text)) - text.rfind("\n", 0, offset) > MAX_COMPARED_LENGTH
