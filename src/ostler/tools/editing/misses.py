"""What is said when a text is not where it was looked for: the nearest place, with line numbers, and what differs."""

import re
from collections.abc import Sequence

from ostler.tools.editing.lines import Lines, has_returns, line_at
from ostler.tools.editing.nearest import CLIP, Near, alike_part, nearest

_SHOWN_LINES = 12
_SHOWN_WIDTH = 200
_NUMBERED = re.compile(r"[ ]{0,12}\d{1,9}\t")


def told(path: str, text: str, old: str, new: str) -> str:
    """Why an edit's `old` is not found in a text, and what stands there instead."""
    lines = Lines(text, returns=has_returns(text))
    if not lines.contents[-1]:
        lines.contents.pop()
    wanted = Lines(old, returns=True).contents
    while len(wanted) > 1 and not wanted[-1].strip():
        wanted.pop()
    said = f"{path} does not contain that text"
    guess = _guess(text, old, new)
    if guess:
        said += f"; {guess}"
    if len(wanted) == 1 and (parted := _parted(text, old)):
        return f"{said}; {parted}"
    near = nearest(lines.contents, wanted)
    if near is None:
        return f"{said}; nothing in it is like it: read it again and copy the text exactly"
    if len(wanted) == 1:
        return f"{said}; {_part_told(lines.contents[near.start], wanted[0], near.start)}"
    return f"{said}; {place_told(lines.contents, wanted, near, 'old')}"


def place_told(contents: Sequence[str], wanted: Sequence[str], near: Near, name: str) -> str:
    """The nearest place, numbered, and the first line of it that is not as wanted."""
    pairs = [
        (index, contents[near.start + index] if index < near.size else "", want) for index, want in enumerate(wanted)
    ]
    index, have, want = next((pair for pair in pairs if pair[1] != pair[2]), pairs[0])
    number = near.start + index + 1
    shown = numbered(contents, near.start, near.size, number - 1)
    span = f"line {near.start + 1}" if near.size == 1 else f"lines {near.start + 1}-{near.start + near.size}"
    if index >= near.size:
        return f"the nearest is {span}:\n{shown}\nthe file ends there, where {name} has {_clip(want, 0)} next"
    differs = f"line {number} has {_around(have, want)} where {name} has {_around(want, have)}{_how(have, want)}"
    return f"the nearest is {span}:\n{shown}\n{differs}"


def _part_told(line: str, want: str, index: int) -> str:
    start, end = alike_part(line, want)
    have = line[start:end]
    shown = numbered([line], 0, 1, 0).replace("     1\t", f"{index + 1:6}\t", 1)
    return (
        f"the nearest is line {index + 1}:\n{shown}\n"
        f"it has {_around(have, want)} where old has {_around(want, have)}{_how(have, want)}"
    )


def numbered(contents: Sequence[str], start: int, size: int, focus: int) -> str:
    """Lines with their numbers, as `read` shows them; of a long run the part around one line."""
    first = min(max(focus - _SHOWN_LINES // 2, start), max(start + size - _SHOWN_LINES, start))
    last = min(first + _SHOWN_LINES, start + size)
    return "\n".join(f"{number + 1:6}\t{contents[number][:_SHOWN_WIDTH]}" for number in range(first, last))


def _how(have: str, want: str) -> str:
    if have.split() == want.split():
        return " (only blanks differ)"
    if have.casefold() == want.casefold():
        return " (only upper and lower case differ)"
    return " (only typographic characters differ)" if _plain(have) == _plain(want) else ""


def _plain(line: str) -> str:
    import unicodedata

    alike = str.maketrans("\u2018\u2019\u201c\u201d\u2010\u2011\u2012\u2013\u2014\u2212", "''\"\"------")
    return unicodedata.normalize("NFKC", line.translate(alike))


def _around(line: str, other: str) -> str:
    """A line as it is written in code, clipped to where it parts from the other."""
    parts = next((i for i, (a, b) in enumerate(zip(line, other, strict=False)) if a != b), min(len(line), len(other)))
    return _clip(line, parts)


def _clip(line: str, at: int) -> str:
    if len(line) <= 120:
        return repr(line)
    start = max(min(at - 40, len(line) - 120), 0)
    before, after = "…" if start else "", "…" if start + 120 < len(line) else ""
    return f"{before}{line[start : start + 120]!r}{after}"


def _guess(text: str, old: str, new: str) -> str:
    """What the caller probably did, where that can be told for certain from the texts."""
    pieces = old.split("\n")
    if old.strip() and all(_NUMBERED.match(piece) for piece in pieces if piece.strip()):
        return "old holds the line numbers that read shows, which are not part of the file"
    if "\\n" in old and "\n" not in old and old.replace("\\n", "\n") in text:
        return "old is escaped once too often: it holds \\n as two characters"
    at = text.find(new) if len(new) >= 8 else -1
    if at < 0:
        return ""
    return f"new already stands at line {line_at(text, at)}, so this change may have been made before"


def _parted(text: str, old: str) -> str:
    """For a part of a long line: how much of it is there, and where the line goes on differently."""
    low, high = 0, min(len(old), 10_000)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if old[:middle] in text else (low, middle - 1)
    at = text.find(old[:low])
    if low < 12 or not _in_long_line(text, at):
        return ""
    line, there = line_at(text, at), text[at + low - 10 : at + low + 60]
    return f"on line {line} it begins so, then the file has {there!r} where old has {old[low - 10 : low + 60]!r}"


def _in_long_line(text: str, at: int) -> bool:
    end = text.find("\n", at)
    return (end if end >= 0 else len(text)) - text.rfind("\n", 0, at) > CLIP
