"""What is said when a text is not where it was looked for: the nearest place, with line numbers, and what differs."""

import re
from collections.abc import Sequence

from ostler.tools.editing.closest_lines import MAX_COMPARED_LENGTH, ClosestLines, closest_lines, most_similar_part
from ostler.tools.editing.text_lines import TextLines, has_lone_cr, line_number_at

_MAX_SHOWN_LINES = 12
_MAX_SHOWN_WIDTH = 200
_NUMBERED = re.compile(r"[ ]{0,12}\d{1,9}\t")


def no_match_message(path: str, text: str, old: str, new: str) -> str:
    """Why an edit's `old` is not found in a text, and what stands there instead."""
    lines = TextLines(text, cr_is_newline=has_lone_cr(text))
    if not lines.contents[-1]:
        lines.contents.pop()
    wanted = TextLines(old, cr_is_newline=True).contents
    while len(wanted) > 1 and not wanted[-1].strip():
        wanted.pop()
    said = f"{path} does not contain that text"
    guess = _guess_cause(text, old, new)
    if guess:
        said += f"; {guess}"
    if len(wanted) == 1 and (parted := _partial_match_message(text, old)):
        return f"{said}; {parted}"
    near = closest_lines(lines.contents, wanted)
    if near is None:
        return f"{said}; nothing in it is like it: read it again and copy the text exactly"
    if len(wanted) == 1:
        return f"{said}; {_closest_part_message(lines.contents[near.start], wanted[0], near.start)}"
    return f"{said}; {closest_place_message(lines.contents, wanted, near, 'old')}"


def closest_place_message(contents: Sequence[str], expected: Sequence[str], closest: ClosestLines, name: str) -> str:
    """The nearest place, numbered, and the first line of it that is not as wanted."""
    pairs = [
        (index, contents[closest.start + index] if index < closest.size else "", want)
        for index, want in enumerate(expected)
    ]
    index, have, want = next((pair for pair in pairs if pair[1] != pair[2]), pairs[0])
    number = closest.start + index + 1
    shown = number_lines(contents, closest.start, closest.size, number - 1)
    span = (
        f"line {closest.start + 1}"
        if closest.size == 1
        else f"lines {closest.start + 1}-{closest.start + closest.size}"
    )
    if index >= closest.size:
        return f"the nearest is {span}:\n{shown}\nthe file ends there, where {name} has {_clip(want, 0)} next"
    differs = f"line {number} has {_quote_difference(have, want)} where {name} has {_quote_difference(want, have)}{_difference_kind(have, want)}"
    return f"the nearest is {span}:\n{shown}\n{differs}"


def _closest_part_message(line: str, want: str, index: int) -> str:
    start, end = most_similar_part(line, want)
    have = line[start:end]
    shown = number_lines([line], 0, 1, 0).replace("     1\t", f"{index + 1:6}\t", 1)
    return (
        f"the nearest is line {index + 1}:\n{shown}\n"
        f"it has {_quote_difference(have, want)} where old has {_quote_difference(want, have)}{_difference_kind(have, want)}"
    )


def number_lines(contents: Sequence[str], start: int, size: int, focus: int) -> str:
    """Lines with their numbers, as `read` shows them; of a long run the part around one line."""
    first = min(max(focus - _MAX_SHOWN_LINES // 2, start), max(start + size - _MAX_SHOWN_LINES, start))
    last = min(first + _MAX_SHOWN_LINES, start + size)
    return "\n".join(f"{number + 1:6}\t{contents[number][:_MAX_SHOWN_WIDTH]}" for number in range(first, last))


def _difference_kind(have: str, want: str) -> str:
    if have.split() == want.split():
        return " (only blanks differ)"
    if have.casefold() == want.casefold():
        return " (only upper and lower case differ)"
    return " (only typographic characters differ)" if _normalize_typography(have) == _normalize_typography(want) else ""


def _normalize_typography(line: str) -> str:
    import unicodedata

    alike = str.maketrans("\u2018\u2019\u201c\u201d\u2010\u2011\u2012\u2013\u2014\u2212", "''\"\"------")
    return unicodedata.normalize("NFKC", line.translate(alike))


def _quote_difference(line: str, other: str) -> str:
    """A line as it is written in code, clipped to where it parts from the other."""
    parts = next((i for i, (a, b) in enumerate(zip(line, other, strict=False)) if a != b), min(len(line), len(other)))
    return _clip(line, parts)


def _clip(line: str, position: int) -> str:
    if len(line) <= 120:
        return repr(line)
    start = max(min(position - 40, len(line) - 120), 0)
    before, after = "…" if start else "", "…" if start + 120 < len(line) else ""
    return f"{before}{line[start : start + 120]!r}{after}"


def _guess_cause(text: str, old: str, new: str) -> str:
    """What the caller probably did, where that can be told for certain from the texts."""
    pieces = old.split("\n")
    if old.strip() and all(_NUMBERED.match(piece) for piece in pieces if piece.strip()):
        return "old holds the line numbers that read shows, which are not part of the file"
    if "\\n" in old and "\n" not in old and old.replace("\\n", "\n") in text:
        return "old is escaped once too often: it holds \\n as two characters"
    at = text.find(new) if len(new) >= 8 else -1
    if at < 0:
        return ""
    return f"new already stands at line {line_number_at(text, at)}, so this change may have been made before"


def _partial_match_message(text: str, old: str) -> str:
    """For a part of a long line: how much of it is there, and where the line goes on differently."""
    low, high = 0, min(len(old), 10_000)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if old[:middle] in text else (low, middle - 1)
    at = text.find(old[:low])
    if low < 12 or not _in_long_line(text, at):
        return ""
    line, there = line_number_at(text, at), text[at + low - 10 : at + low + 60]
    return f"on line {line} it begins so, then the file has {there!r} where old has {old[low - 10 : low + 60]!r}"


def _in_long_line(text: str, offset: int) -> bool:
    end = text.find("\n", offset)
    return (end if end >= 0 else len(text)) - text.rfind("\n", 0, offset) > MAX_COMPARED_LENGTH
