"""Parses the lines of one hunk, by its counts or by its signs."""

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
    """A line without a sign, which may be a context line."""


def parse_hunk(lines: Sequence[str], index: int) -> tuple[Hunk, int]:
    """Parse the hunk whose `@@` line is at an index; return it and the index after it. Raises `ToolError`."""
    title = lines[index].rstrip("\r")
    if title.startswith("@@@"):
        raise bad_patch_error("a combined diff of a merge cannot be applied; give a plain diff", index + 1)
    numbers = _HUNK_HEADER.match(title)
    start = int(numbers[1]) if numbers else None
    body = _parse_by_counts(lines, index + 1, numbers) if numbers else None
    hunk_lines, end = body or parse_by_signs(lines, index + 1, is_end=is_hunk_end)
    return make_hunk(title, hunk_lines, index, start=start), end


def make_hunk(
    title: str,
    lines: list[PatchLine],
    index: int,
    *,
    start: int | None = None,
    anchors: tuple[str, ...] = (),
    at_end: bool = False,
) -> Hunk:
    """Return a hunk of these lines. Raises `ToolError` if it changes nothing."""
    if not any(line.sign != " " for line in lines):
        raise bad_patch_error("this hunk has no line that begins with + or -", index + 1)
    return Hunk(title, tuple(lines), start, anchors, at_end)


def hunk_start_line(title: str) -> int | None:
    """Return the start line in a unified `@@` line, or None."""
    match = _HUNK_HEADER.match(title)
    return int(match[1]) if match else None


def _parse_by_counts(lines: Sequence[str], index: int, numbers: re.Match[str]) -> tuple[list[PatchLine], int] | None:
    """Parse the number of lines given in the header; return None if they do not match it."""
    old, new = (int(count) if count is not None else 1 for count in (numbers[2], numbers[4]))
    parsed: list[PatchLine] = []
    while old > 0 or new > 0 or (index < len(lines) and parsed and _parse_line(lines[index]) is None):
        if index < len(lines) and _starts_next_section(lines, index):
            return None
        line = _parse_line(lines[index]) if index < len(lines) else UnsignedPatchLine(" ", "?")
        if line is None and parsed:
            parsed[-1] = _without_newline(parsed[-1])
        elif line is None or (isinstance(line, UnsignedPatchLine) and line.text):
            return None
        else:
            old, new = old - (line.sign != "+"), new - (line.sign != "-")
            parsed.append(line)
        index += 1
    if old or new or not parsed or not _is_hunk_complete(lines, index):
        return None
    return [_as_plain_line(line) for line in parsed], index


def _starts_next_section(lines: Sequence[str], index: int) -> bool:
    """Return whether lines within a hunk's count are the next file's header or a mail signature."""
    line, *following = (line.rstrip("\r") for line in lines[index : index + 3])
    if line.rstrip() == "--":
        return bool(following) and _SIGNATURE.match(following[0]) is not None
    if len(following) < 2 or not (line.startswith("--- ") and following[0].startswith("+++ ")):
        return False
    if not following[1].startswith("@@"):
        return False
    try:
        old, new = strip_prefixes(header_name(line[4:], index + 1), header_name(following[0][4:], index + 2))
    except ToolError:
        return False  # an unclosed quote, so this is content
    return old == new or DEV_NULL in (old, new)


def _is_hunk_complete(lines: Sequence[str], index: int) -> bool:
    """Return whether no more lines of the hunk follow, also after lines without a sign."""
    while index < len(lines) and lines[index].strip() and not is_hunk_end(lines, index) and not _has_sign(lines[index]):
        index += 1
    while index < len(lines) and not lines[index].strip():
        index += 1
    return index == len(lines) or is_hunk_end(lines, index) or not _has_sign(lines[index])


def _has_sign(line: str) -> bool:
    return line.startswith((" ", "+", "-", "\\"))


def parse_by_signs(lines: Sequence[str], index: int, is_end: EndTest) -> tuple[list[PatchLine], int]:
    """Parse lines up to the end of the hunk; blank and unsigned lines at its end are dropped."""
    parsed: list[PatchLine] = []
    while index < len(lines) and not is_end(lines, index):
        line = _parse_line(lines[index])
        if line is not None:
            parsed.append(line)
        elif parsed:
            parsed[-1] = _without_newline(parsed[-1])
        index += 1
    while parsed and isinstance(parsed[-1], UnsignedPatchLine):
        parsed.pop()
    return [_as_plain_line(line) for line in parsed], index


def is_hunk_end(lines: Sequence[str], index: int) -> bool:
    """Return whether a line of a unified diff starts something other than a hunk line."""
    line = lines[index].rstrip("\r")
    if line.startswith(("@@", "diff --git ", "Index: ", "*** End Patch", *_FENCES)):
        return True
    following = lines[index + 1] if index + 1 < len(lines) else ""
    if line.rstrip() == "--":
        return _SIGNATURE.match(following) is not None
    return line.startswith("--- ") and following.startswith("+++ ")


def _parse_line(raw: str) -> PatchLine | None:
    """Parse a line of a hunk; return None for the `\\ No newline` marker."""
    text, end = (raw[:-1], "\r\n") if raw.endswith("\r") else (raw, "\n")
    if text.startswith("\\ "):
        return None
    if text.startswith((" ", "+", "-")):
        return PatchLine(text[0], text[1:], end)  # type: ignore[arg-type]  # one of the three signs
    return UnsignedPatchLine(" ", text, end)


def _without_newline(line: PatchLine) -> PatchLine:
    """Return the line without a line ending; a CR at its end becomes content."""
    return type(line)(line.sign, line.text + "\r" * (line.end == "\r\n"), "")


def _as_plain_line(line: PatchLine) -> PatchLine:
    return PatchLine(line.sign, line.text, line.end)
