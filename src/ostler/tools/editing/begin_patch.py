"""The `*** Begin Patch` form, read into file patches."""

from collections.abc import Sequence

from ostler.tools.editing.hunk_parser import hunk_start_line, make_hunk, parse_by_signs
from ostler.tools.editing.patch_types import FilePatch, Hunk, PatchLine, bad_patch_error

BEGIN = "*** Begin Patch"
_END = "*** End Patch"
_ADD, _UPDATE, _DELETE, _MOVE = "*** Add File:", "*** Update File:", "*** Delete File:", "*** Move to:"
_END_OF_FILE = "*** End of File"


def is_begin_patch(patch: str) -> bool:
    """Whether a text holds a patch of this form."""
    starts = (BEGIN, _ADD, _UPDATE, _DELETE)
    return any(line.startswith(starts) for line in patch.split("\n"))


def parse_begin_patch(patch: str) -> list[FilePatch]:
    """The file patches between each `*** Begin Patch` and its `*** End Patch`; what stands around is passed over."""
    lines = patch.split("\n")
    at = _find_begin(lines, 0)
    if at is None:
        raise bad_patch_error(f"it has no {BEGIN!r} line")
    patches: list[FilePatch] = []
    while at is not None:
        found, behind = _parse_until_end(lines, at + 1)
        patches += found
        at = _find_begin(lines, behind)
    if not patches:
        raise bad_patch_error("it changes no file")
    return patches


def _find_begin(lines: Sequence[str], start: int) -> int | None:
    return next((index for index in range(start, len(lines)) if lines[index].strip() == BEGIN), None)


def _parse_until_end(lines: Sequence[str], index: int) -> tuple[list[FilePatch], int]:
    """The file patches up to the `*** End Patch` line, and its index."""
    patches: list[FilePatch] = []
    while index < len(lines) and lines[index].strip() != _END:
        if not lines[index].strip():
            index += 1
            continue
        patch_read, index = _parse_file(lines, index)
        patches.append(patch_read)
    if index >= len(lines):
        raise bad_patch_error(f"it has no {_END!r} line, so it may have been cut off; give it whole")
    return patches, index


def _parse_file(lines: Sequence[str], index: int) -> tuple[FilePatch, int]:
    line = lines[index].strip()
    for start, read in ((_ADD, _parse_add), (_UPDATE, _parse_update), (_DELETE, _parse_delete)):
        if line.startswith(start):
            path = line[len(start) :].strip()
            if not path:
                raise bad_patch_error("the file has no name", index + 1)
            return read(path, lines, index + 1)
    said = f"{line[:80]!r} should be one of {_ADD!r}, {_UPDATE!r}, {_DELETE!r} and {_END!r}"
    raise bad_patch_error(said, index + 1)


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
    to = ""
    if index < len(lines) and lines[index].strip().startswith(_MOVE):
        to = lines[index].strip()[len(_MOVE) :].strip()
        index += 1
    first = index
    hunks: list[Hunk] = []
    while index < len(lines) and not _starts_file(lines, index):
        if lines[index].strip():
            hunk, index = _parse_hunk(lines, index)
            hunks.append(hunk)
        else:
            index += 1
    if not hunks and not to:
        raise bad_patch_error(f"nothing is said to be changed in {path}", first)
    return FilePatch("rename" if to else "update", path, to, tuple(hunks)), index


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
