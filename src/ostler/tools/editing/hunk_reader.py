"""The lines of one hunk, read by its counts where they are right and by its signs where they are not."""

import re
from collections.abc import Callable, Sequence

from ostler.tools.editing.names import NOTHING, bare_names, header_name
from ostler.tools.editing.patches import Hunk, Line, bad_patch
from ostler.vocabulary.errors import ToolFailure

_NUMBERS = re.compile(r"@@+ *-(\d{1,9})(?:,(\d{1,9}))? +\+(\d{1,9})(?:,(\d{1,9}))? *(?:@@|$)")
_FENCES = ("```", "~~~")
_SIGNATURE = re.compile(r"\d+\.\d+")
Ends = Callable[[Sequence[str], int], bool]


class Unsigned(Line, frozen=True):
    """A line that lost its sign: a line of context, if it is one at all."""


def read_hunk(lines: Sequence[str], at: int) -> tuple[Hunk, int]:
    """The hunk whose `@@` line is at an index of a unified diff, and the index behind it."""
    title = lines[at].rstrip("\r")
    if title.startswith("@@@"):
        raise bad_patch("a combined diff of a merge cannot be applied; give a plain diff", at + 1)
    numbers = _NUMBERS.match(title)
    start = int(numbers[1]) if numbers else None
    body = _counted(lines, at + 1, numbers) if numbers else None
    found, behind = body or read_signed(lines, at + 1, ends=ends_unified)
    return hunk_of(title, found, at, start=start), behind


def hunk_of(
    title: str,
    lines: list[Line],
    at: int,
    *,
    start: int | None = None,
    anchors: tuple[str, ...] = (),
    at_end: bool = False,
) -> Hunk:
    """A hunk of some lines; refused when it changes nothing."""
    if not any(line.sign != " " for line in lines):
        raise bad_patch("this hunk has no line that begins with + or -", at + 1)
    return Hunk(title, tuple(lines), start, anchors, at_end)


def numbers_in(title: str) -> int | None:
    """The line a unified `@@` line says its hunk begins at."""
    found = _NUMBERS.match(title)
    return int(found[1]) if found else None


def _counted(lines: Sequence[str], at: int, numbers: re.Match[str]) -> tuple[list[Line], int] | None:
    """The lines a header counts; None when the lines there are not what it counts."""
    old, new = (int(count) if count is not None else 1 for count in (numbers[2], numbers[4]))
    found: list[Line] = []
    while old > 0 or new > 0 or (at < len(lines) and found and _line(lines[at]) is None):
        if at < len(lines) and _begins_another(lines, at):
            return None
        line = _line(lines[at]) if at < len(lines) else Unsigned(" ", "?")
        if line is None and found:
            found[-1] = _endless(found[-1])
        elif line is None or (isinstance(line, Unsigned) and line.text):
            return None
        else:
            old, new = old - (line.sign != "+"), new - (line.sign != "-")
            found.append(line)
        at += 1
    if old or new or not found or not _is_over(lines, at):
        return None
    return [_signed(line) for line in found], at


def _begins_another(lines: Sequence[str], at: int) -> bool:
    """Whether what a count would take for lines of a hunk can only be the next file's names, or a mail's signature."""
    line, *behind = (line.rstrip("\r") for line in lines[at : at + 3])
    if line.rstrip() == "--":
        return bool(behind) and _SIGNATURE.match(behind[0]) is not None
    if len(behind) < 2 or not (line.startswith("--- ") and behind[0].startswith("+++ ") and behind[1].startswith("@@")):
        return False
    try:
        old, new = bare_names(header_name(line[4:], at + 1), header_name(behind[0][4:], at + 2))
    except ToolFailure:
        return False  # a quote that is not closed: content
    return old == new or NOTHING in (old, new)


def _is_over(lines: Sequence[str], at: int) -> bool:
    """Whether nothing of a hunk follows; lines without a sign right behind it may have lost theirs."""
    while at < len(lines) and lines[at].strip() and not ends_unified(lines, at) and not _has_sign(lines[at]):
        at += 1
    while at < len(lines) and not lines[at].strip():
        at += 1
    return at == len(lines) or ends_unified(lines, at) or not _has_sign(lines[at])


def _has_sign(line: str) -> bool:
    return line.startswith((" ", "+", "-", "\\"))


def read_signed(lines: Sequence[str], at: int, ends: Ends) -> tuple[list[Line], int]:
    """Lines up to where a hunk must end; blank and unsigned ones at its end are not part of it."""
    found: list[Line] = []
    while at < len(lines) and not ends(lines, at):
        line = _line(lines[at])
        if line is not None:
            found.append(line)
        elif found:
            found[-1] = _endless(found[-1])
        at += 1
    while found and isinstance(found[-1], Unsigned):
        found.pop()
    return [_signed(line) for line in found], at


def ends_unified(lines: Sequence[str], at: int) -> bool:
    """Whether a line of a unified diff begins something other than a line of a hunk."""
    line = lines[at].rstrip("\r")
    if line.startswith(("@@", "diff --git ", "Index: ", "*** End Patch", *_FENCES)):
        return True
    after = lines[at + 1] if at + 1 < len(lines) else ""
    if line.rstrip() == "--":
        return _SIGNATURE.match(after) is not None
    return line.startswith("--- ") and after.startswith("+++ ")


def _line(raw: str) -> Line | None:
    """A line of a hunk; None for the marker of a missing line end."""
    text, end = (raw[:-1], "\r\n") if raw.endswith("\r") else (raw, "\n")
    if text.startswith("\\ "):
        return None
    if text.startswith((" ", "+", "-")):
        return Line(text[0], text[1:], end)  # type: ignore[arg-type]  # one of the three signs
    return Unsigned(" ", text, end)


def _endless(line: Line) -> Line:
    """A line without a line end, so that a carriage return at its end is content."""
    return type(line)(line.sign, line.text + "\r" * (line.end == "\r\n"), "")


def _signed(line: Line) -> Line:
    return Line(line.sign, line.text, line.end)
