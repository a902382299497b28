"""The lines of one hunk, read by its counts where they are right and by its signs where they are not."""

import re
from collections.abc import Callable, Sequence

from ostler.core.errors import ToolError
from ostler.tools.editing.diff_paths import DEV_NULL, header_name, strip_prefixes
from ostler.tools.editing.patch_types import Hunk, PatchLine, bad_patch_error

_HUNK_HEADER = re.compile(r"@@+ *-(\d{1,9})(?:,(\d{1,9}))? +\+(\d{1,9})(?:,(\d{1,9}))? *(?:@@|$)")
_FENCES = ("```", "~~~")
_SIGNATURE = re.compile(r"\d+\.\d+")
EndTest = Callable[[Sequence[str], int], bool]


class UnsignedPatchLine(PatchLine, frozen=True):
    """A line that lost its sign: a line of context, if it is one at all."""


def parse_hunk(lines: Sequence[str], index: int) -> tuple[Hunk, int]:
    """The hunk whose `@@` line is at an index of a unified diff, and the index behind it."""
    title = lines[index].rstrip("\r")
    if title.startswith("@@@"):
        raise bad_patch_error("a combined diff of a merge cannot be applied; give a plain diff", index + 1)
    numbers = _HUNK_HEADER.match(title)
    start = int(numbers[1]) if numbers else None
    body = _parse_by_counts(lines, index + 1, numbers) if numbers else None
    found, behind = body or parse_by_signs(lines, index + 1, is_end=is_hunk_end)
    return make_hunk(title, found, index, start=start), behind


def make_hunk(
    title: str,
    lines: list[PatchLine],
    index: int,
    *,
    start: int | None = None,
    anchors: tuple[str, ...] = (),
    at_end: bool = False,
) -> Hunk:
    """A hunk of some lines; refused when it changes nothing."""
    if not any(line.sign != " " for line in lines):
        raise bad_patch_error("this hunk has no line that begins with + or -", index + 1)
    return Hunk(title, tuple(lines), start, anchors, at_end)


def hunk_start_line(title: str) -> int | None:
    """The line a unified `@@` line says its hunk begins at."""
    found = _HUNK_HEADER.match(title)
    return int(found[1]) if found else None


def _parse_by_counts(lines: Sequence[str], index: int, numbers: re.Match[str]) -> tuple[list[PatchLine], int] | None:
    """The lines a header counts; None when the lines there are not what it counts."""
    old, new = (int(count) if count is not None else 1 for count in (numbers[2], numbers[4]))
    found: list[PatchLine] = []
    while old > 0 or new > 0 or (index < len(lines) and found and _parse_line(lines[index]) is None):
        if index < len(lines) and _starts_next_section(lines, index):
            return None
        line = _parse_line(lines[index]) if index < len(lines) else UnsignedPatchLine(" ", "?")
        if line is None and found:
            found[-1] = _without_newline(found[-1])
        elif line is None or (isinstance(line, UnsignedPatchLine) and line.text):
            return None
        else:
            old, new = old - (line.sign != "+"), new - (line.sign != "-")
            found.append(line)
        index += 1
    if old or new or not found or not _is_hunk_complete(lines, index):
        return None
    return [_as_plain_line(line) for line in found], index


def _starts_next_section(lines: Sequence[str], index: int) -> bool:
    """Whether what a count would take for lines of a hunk can only be the next file's names, or a mail's signature."""
    line, *behind = (line.rstrip("\r") for line in lines[index : index + 3])
    if line.rstrip() == "--":
        return bool(behind) and _SIGNATURE.match(behind[0]) is not None
    if len(behind) < 2 or not (line.startswith("--- ") and behind[0].startswith("+++ ") and behind[1].startswith("@@")):
        return False
    try:
        old, new = strip_prefixes(header_name(line[4:], index + 1), header_name(behind[0][4:], index + 2))
    except ToolError:
        return False  # a quote that is not closed: content
    return old == new or DEV_NULL in (old, new)


def _is_hunk_complete(lines: Sequence[str], index: int) -> bool:
    """Whether nothing of a hunk follows; lines without a sign right behind it may have lost theirs."""
    while index < len(lines) and lines[index].strip() and not is_hunk_end(lines, index) and not _has_sign(lines[index]):
        index += 1
    while index < len(lines) and not lines[index].strip():
        index += 1
    return index == len(lines) or is_hunk_end(lines, index) or not _has_sign(lines[index])


def _has_sign(line: str) -> bool:
    return line.startswith((" ", "+", "-", "\\"))


def parse_by_signs(lines: Sequence[str], index: int, is_end: EndTest) -> tuple[list[PatchLine], int]:
    """Lines up to where a hunk must end; blank and unsigned ones at its end are not part of it."""
    found: list[PatchLine] = []
    while index < len(lines) and not is_end(lines, index):
        line = _parse_line(lines[index])
        if line is not None:
            found.append(line)
        elif found:
            found[-1] = _without_newline(found[-1])
        index += 1
    while found and isinstance(found[-1], UnsignedPatchLine):
        found.pop()
    return [_as_plain_line(line) for line in found], index


def is_hunk_end(lines: Sequence[str], index: int) -> bool:
    """Whether a line of a unified diff begins something other than a line of a hunk."""
    line = lines[index].rstrip("\r")
    if line.startswith(("@@", "diff --git ", "Index: ", "*** End Patch", *_FENCES)):
        return True
    after = lines[index + 1] if index + 1 < len(lines) else ""
    if line.rstrip() == "--":
        return _SIGNATURE.match(after) is not None
    return line.startswith("--- ") and after.startswith("+++ ")


def _parse_line(raw: str) -> PatchLine | None:
    """A line of a hunk; None for the marker of a missing line end."""
    text, end = (raw[:-1], "\r\n") if raw.endswith("\r") else (raw, "\n")
    if text.startswith("\\ "):
        return None
    if text.startswith((" ", "+", "-")):
        return PatchLine(text[0], text[1:], end)  # type: ignore[arg-type]  # one of the three signs
    return UnsignedPatchLine(" ", text, end)


def _without_newline(line: PatchLine) -> PatchLine:
    """A line without a line end, so that a carriage return at its end is content."""
    return type(line)(line.sign, line.text + "\r" * (line.end == "\r\n"), "")


def _as_plain_line(line: PatchLine) -> PatchLine:
    return PatchLine(line.sign, line.text, line.end)
