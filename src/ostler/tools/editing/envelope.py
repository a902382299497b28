"""The `*** Begin Patch` form, read into file patches."""

from collections.abc import Sequence

from ostler.tools.editing.hunk_reader import hunk_of, numbers_in, read_signed
from ostler.tools.editing.patches import FilePatch, Hunk, Line, bad_patch

BEGIN = "*** Begin Patch"
_END = "*** End Patch"
_ADD, _UPDATE, _DELETE, _MOVE = "*** Add File:", "*** Update File:", "*** Delete File:", "*** Move to:"
_END_OF_FILE = "*** End of File"


def is_envelope(patch: str) -> bool:
    """Whether a text holds a patch of this form."""
    starts = (BEGIN, _ADD, _UPDATE, _DELETE)
    return any(line.startswith(starts) for line in patch.split("\n"))


def read_envelope(patch: str) -> list[FilePatch]:
    """The file patches between each `*** Begin Patch` and its `*** End Patch`; what stands around is passed over."""
    lines = patch.split("\n")
    at = _beginning(lines, 0)
    if at is None:
        raise bad_patch(f"it has no {BEGIN!r} line")
    patches: list[FilePatch] = []
    while at is not None:
        found, behind = _between(lines, at + 1)
        patches += found
        at = _beginning(lines, behind)
    if not patches:
        raise bad_patch("it changes no file")
    return patches


def _beginning(lines: Sequence[str], at: int) -> int | None:
    return next((index for index in range(at, len(lines)) if lines[index].strip() == BEGIN), None)


def _between(lines: Sequence[str], at: int) -> tuple[list[FilePatch], int]:
    """The file patches up to the `*** End Patch` line, and its index."""
    patches: list[FilePatch] = []
    while at < len(lines) and lines[at].strip() != _END:
        if not lines[at].strip():
            at += 1
            continue
        patch_read, at = _file(lines, at)
        patches.append(patch_read)
    if at >= len(lines):
        raise bad_patch(f"it has no {_END!r} line, so it may have been cut off; give it whole")
    return patches, at


def _file(lines: Sequence[str], at: int) -> tuple[FilePatch, int]:
    line = lines[at].strip()
    for start, read in ((_ADD, _added), (_UPDATE, _updated), (_DELETE, _deleted)):
        if line.startswith(start):
            path = line[len(start) :].strip()
            if not path:
                raise bad_patch("the file has no name", at + 1)
            return read(path, lines, at + 1)
    said = f"{line[:80]!r} should be one of {_ADD!r}, {_UPDATE!r}, {_DELETE!r} and {_END!r}"
    raise bad_patch(said, at + 1)


def _deleted(path: str, lines: Sequence[str], at: int) -> tuple[FilePatch, int]:
    return FilePatch("delete", path, unseen=True), at


def _added(path: str, lines: Sequence[str], at: int) -> tuple[FilePatch, int]:
    first = at
    body: list[Line] = []
    while at < len(lines) and not _begins_file(lines, at):
        text = lines[at].rstrip("\r")
        if text.strip() and not text.startswith("+"):
            raise bad_patch(f"each line of the new file {path} must begin with +", at + 1)
        body.append(Line("+", text[1:]))
        at += 1
    while body and not lines[first + len(body) - 1].strip():
        body.pop()
    return FilePatch("create", path, hunks=(Hunk("", tuple(body)),) if body else ()), at


def _updated(path: str, lines: Sequence[str], at: int) -> tuple[FilePatch, int]:
    to = ""
    if at < len(lines) and lines[at].strip().startswith(_MOVE):
        to = lines[at].strip()[len(_MOVE) :].strip()
        at += 1
    first = at
    hunks: list[Hunk] = []
    while at < len(lines) and not _begins_file(lines, at):
        if lines[at].strip():
            hunk, at = _hunk(lines, at)
            hunks.append(hunk)
        else:
            at += 1
    if not hunks and not to:
        raise bad_patch(f"nothing is said to be changed in {path}", first)
    return FilePatch("rename" if to else "update", path, to, tuple(hunks)), at


def _hunk(lines: Sequence[str], at: int) -> tuple[Hunk, int]:
    first = at
    anchors: list[str] = []
    start: int | None = None
    while at < len(lines) and lines[at].startswith("@@"):
        title = lines[at].rstrip()
        number = numbers_in(title)
        start = start if number is None else number
        anchor = title[2:].strip().removesuffix("@@").rstrip()
        if anchor and number is None:
            anchors.append(anchor)
        at += 1
    body, at = read_signed(lines, at, ends=_ends_hunk)
    at_end = at < len(lines) and lines[at].strip() == _END_OF_FILE
    title = lines[first].rstrip() if lines[first].startswith("@@") else ""
    return hunk_of(title, body, first, start=start, anchors=tuple(anchors), at_end=at_end), at + at_end


def _begins_file(lines: Sequence[str], at: int) -> bool:
    return lines[at].rstrip().startswith((_ADD, _UPDATE, _DELETE, _END))


def _ends_hunk(lines: Sequence[str], at: int) -> bool:
    return lines[at].startswith("@@") or lines[at].rstrip() == _END_OF_FILE or _begins_file(lines, at)
