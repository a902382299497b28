"""Parses the `*** Begin Patch` format."""

from collections.abc import Sequence

from ostler.tools.editing.hunk_parser import hunk_start_line, make_hunk, parse_by_signs
from ostler.tools.editing.patch_types import FilePatch, Hunk, PatchLine, bad_patch_error

BEGIN = "*** Begin Patch"
_END = "*** End Patch"
_ADD, _UPDATE, _DELETE, _MOVE = "*** Add File:", "*** Update File:", "*** Delete File:", "*** Move to:"
_END_OF_FILE = "*** End of File"


def is_begin_patch(patch: str) -> bool:
    """Return whether a text contains a patch in this format."""
    starts = (BEGIN, _ADD, _UPDATE, _DELETE)
    return any(line.startswith(starts) for line in patch.split("\n"))


def parse_begin_patch(patch: str) -> list[FilePatch]:
    """Parse the file patches between `*** Begin Patch` and `*** End Patch` lines; other text is ignored."""
    lines = patch.split("\n")
    index = _find_begin(lines, 0)
    if index is None:
        raise bad_patch_error(f"it has no {BEGIN!r} line")
    patches: list[FilePatch] = []
    while index is not None:
        new_patches, end = _parse_until_end(lines, index + 1)
        patches += new_patches
        index = _find_begin(lines, end)
    if not patches:
        raise bad_patch_error("it changes no file")
    return patches


def _find_begin(lines: Sequence[str], start: int) -> int | None:
    return next((index for index in range(start, len(lines)) if lines[index].strip() == BEGIN), None)


def _parse_until_end(lines: Sequence[str], index: int) -> tuple[list[FilePatch], int]:
    """Parse the file patches up to the `*** End Patch` line; return them and its index."""
    patches: list[FilePatch] = []
    while index < len(lines) and lines[index].strip() != _END:
        if not lines[index].strip():
            index += 1
            continue
        patch, index = _parse_file(lines, index)
        patches.append(patch)
    if index >= len(lines):
        raise bad_patch_error(f"it has no {_END!r} line, so it may be truncated; send the complete patch")
    return patches, index


def _parse_file(lines: Sequence[str], index: int) -> tuple[FilePatch, int]:
    line = lines[index].strip()
    for start, parse in ((_ADD, _parse_add), (_UPDATE, _parse_update), (_DELETE, _parse_delete)):
        if line.startswith(start):
            path = line[len(start) :].strip()
            if not path:
                raise bad_patch_error("the file has no name", index + 1)
            return parse(path, lines, index + 1)
    message = f"{line[:80]!r} should be one of {_ADD!r}, {_UPDATE!r}, {_DELETE!r} and {_END!r}"
    raise bad_patch_error(message, index + 1)


def _parse_delete(path: str, lines: Sequence[str], index: int) -> tuple[FilePatch, int]:
    return FilePatch("delete", path, without_content=True), index


def _parse_add(path: str, lines: Sequence[str], index: int) -> tuple[FilePatch, int]:
    first = index
    body: list[PatchLine] = []
    while index < len(lines) and not _starts_file(lines, index):
        text = lines[index].rstrip("\r")
        if text.strip() and not text.startswith("+"):
            raise bad_patch_error(f"each line of the new file {path} must begin with +", index + 1)
        body.append(PatchLine("+", text[1:]))
        index += 1
    while body and not lines[first + len(body) - 1].strip():
        body.pop()
    return FilePatch("create", path, hunks=(Hunk("", tuple(body)),) if body else ()), index


def _parse_update(path: str, lines: Sequence[str], index: int) -> tuple[FilePatch, int]:
    new_path = ""
    if index < len(lines) and lines[index].strip().startswith(_MOVE):
        new_path = lines[index].strip()[len(_MOVE) :].strip()
        index += 1
    first = index
    hunks: list[Hunk] = []
    while index < len(lines) and not _starts_file(lines, index):
        if lines[index].strip():
            hunk, index = _parse_hunk(lines, index)
            hunks.append(hunk)
        else:
            index += 1
    if not hunks and not new_path:
        raise bad_patch_error(f"it changes nothing in {path}", first)
    return FilePatch("rename" if new_path else "update", path, new_path, tuple(hunks)), index


def _parse_hunk(lines: Sequence[str], index: int) -> tuple[Hunk, int]:
    first = index
    anchors: list[str] = []
    start: int | None = None
    while index < len(lines) and lines[index].startswith("@@"):
        title = lines[index].rstrip()
        number = hunk_start_line(title)
        start = start if number is None else number
        anchor = title[2:].strip().removesuffix("@@").rstrip()
        if anchor and number is None:
            anchors.append(anchor)
        index += 1
    body, index = parse_by_signs(lines, index, is_end=_is_hunk_end)
    at_end = index < len(lines) and lines[index].strip() == _END_OF_FILE
    title = lines[first].rstrip() if lines[first].startswith("@@") else ""
    return make_hunk(title, body, first, start=start, anchors=tuple(anchors), at_end=at_end), index + at_end


def _starts_file(lines: Sequence[str], index: int) -> bool:
    return lines[index].rstrip().startswith((_ADD, _UPDATE, _DELETE, _END))


def _is_hunk_end(lines: Sequence[str], index: int) -> bool:
    return lines[index].startswith("@@") or lines[index].rstrip() == _END_OF_FILE or _starts_file(lines, index)
