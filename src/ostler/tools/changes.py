"""How changes of files are shown: before they happen, as a preview, and after, as a result."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

from ostler.vocabulary.display import DiffShown, Display, DisplayBlock, Note
from ostler.vocabulary.errors import PathRefused
from ostler.vocabulary.seams import Ground, Place, Written
from ostler.vocabulary.tools import ToolResult
from ostler.workspace.newlines import in_style

PREVIEW_LINES = 4_000  # whoever is asked sees it whole
RESULT_LINES = 400
_LARGE = 200_000
_CHARACTERS = 250  # for each of those lines; a diff of longer ones loses its middle


async def change_preview(ground: Ground, place: Place, after: str) -> Display:
    """Path, operation, line counts and a diff of what writing `after` would do; refused when the file was changed."""
    if not place.inside:
        return Display()
    from ostler.text.diff import unified  # only a change pays for it

    before = ""
    try:
        if place.exists:
            file = await ground.read_to_change(place.absolute)
            before, after = file.text, in_style(after, file.newline)  # as it will be written
    except PathRefused as refusal:
        if refusal.fault.code == "changed_on_disk":
            raise
        return Display(str(refusal))
    work = partial(unified, before, after, place.shown, max_lines=PREVIEW_LINES)
    diff = await asyncio.to_thread(work) if len(before) + len(after) > _LARGE else work()
    operation: Literal["updated", "created"] = "updated" if place.exists else "created"
    text, cut = _narrowed(diff.text, PREVIEW_LINES)
    shown = DiffShown(place.shown, text, operation, diff.additions, diff.deletions, cut or diff.cut)
    return Display(f"{operation} {place.shown} (+{diff.additions} -{diff.deletions})", (shown,))


def changes_shown(written: Sequence[Written], notes: Sequence[str] = (), most: int = PREVIEW_LINES) -> Display:
    """Changes that will be or were made: a line on all of them, a diff of each, and what is worth a note."""
    blocks: list[DisplayBlock] = [_diff(one, most) for one in written if one.operation != "unchanged"]
    if notes:
        blocks.append(Note("\n".join(notes)))
    return Display(_summary(written), tuple(blocks))


def change_result(written: Written, notes: Sequence[str] = (), **more: Any) -> ToolResult:
    """What was done to one file: for the model in a line, for the person with the diff; `more` is for machines."""
    diff, cut = _cut(written, RESULT_LINES)
    data = {
        "path": written.path,
        "operation": written.operation,
        "size": written.size,
        "additions": written.additions,
        "deletions": written.deletions,
        "diff": diff,
        "diff_truncated": cut,
        **more,
    }
    told = "\n".join([_line(written), *notes])
    return ToolResult("", "ok", told, changes_shown([written], notes, RESULT_LINES), data)


def changes_result(written: Sequence[Written], notes: Sequence[str], *, dry_run: bool) -> ToolResult:
    """What was done, or would be, to several files."""
    files = [_file(one) for one in written]
    data = {"ok": True, "dry_run": dry_run, "applied": len(files), "files": files}
    head = ["Dry run: the patch applies, and nothing was changed."] if dry_run else []
    told = "\n".join([*head, *(_line(one) for one in written), *notes])
    return ToolResult("", "ok", told, changes_shown(written, notes, RESULT_LINES), data)


def _file(written: Written) -> dict[str, Any]:
    file: dict[str, Any] = {
        "path": written.path,
        "operation": written.operation,
        "additions": written.additions,
        "deletions": written.deletions,
        "bytes": written.size,
    }
    return {**file, "from": written.source} if written.source else file


def _summary(written: Sequence[Written]) -> str:
    if len(written) == 1:
        return _line(written[0])
    added, removed = sum(one.additions for one in written), sum(one.deletions for one in written)
    return f"{len(written)} files (+{added} -{removed})"


def _line(written: Written) -> str:
    name = f"{written.source} to {written.path}" if written.source else written.path
    return f"{written.operation} {name} (+{written.additions} -{written.deletions})"


def _diff(written: Written, most: int) -> DiffShown:
    text, cut = _cut(written, most)
    return DiffShown(written.path, text, written.operation, written.additions, written.deletions, cut)


def _cut(written: Written, most: int) -> tuple[str, bool]:
    lines = written.diff.split("\n", most)
    if len(lines) <= most or not lines[-1]:
        text, cut = _narrowed(written.diff, most)
        return text, cut or written.diff_cut
    from ostler.text.cut import marker

    left_out = lines.pop().count("\n") + 1
    return _narrowed("\n".join([*lines, marker(left_out, "lines of the diff"), ""]), most)[0], True


def _narrowed(diff: str, lines: int) -> tuple[str, bool]:
    """A diff of very long lines without its middle, and whether it has lost one."""
    if len(diff) <= lines * _CHARACTERS:
        return diff, False
    from ostler.text.cut import cut_middle

    return cut_middle(diff, lines * _CHARACTERS, what="characters of the diff").text, True
