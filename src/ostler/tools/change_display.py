"""How changes of files are shown: before they happen, as a preview, and after, as a result."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

from ostler.core.display import Display, DisplayBlock, DisplayDiff, DisplayText
from ostler.core.errors import PathError
from ostler.core.protocols import ResolvedPath, Workspace, WriteResult
from ostler.core.tools import ToolResult
from ostler.workspace.newlines import with_newline

PREVIEW_LINES = 4_000  # whoever is asked sees it whole
RESULT_LINES = 400
_LARGE_TEXT = 200_000
_CHARACTERS_PER_LINE = 250  # for each of those lines; a diff of longer ones loses its middle


async def change_preview(workspace: Workspace, place: ResolvedPath, new_text: str) -> Display:
    """Path, operation, line counts and a diff of what writing `after` would do; refused when the file was changed."""
    if not place.in_workspace:
        return Display()
    from ostler.text.diff import unified_diff  # only a change pays for it

    before = ""
    try:
        if place.exists:
            file = await workspace.read_for_edit(place.absolute)
            before, new_text = file.text, with_newline(new_text, file.newline)  # as it will be written
    except PathError as refusal:
        if refusal.fault.code == "changed_on_disk":
            raise
        return Display(str(refusal))
    work = partial(unified_diff, before, new_text, place.display_path, max_lines=PREVIEW_LINES)
    diff = await asyncio.to_thread(work) if len(before) + len(new_text) > _LARGE_TEXT else work()
    operation: Literal["updated", "created"] = "updated" if place.exists else "created"
    text, cut = _truncate_characters(diff.text, PREVIEW_LINES)
    shown = DisplayDiff(place.display_path, text, operation, diff.additions, diff.deletions, cut or diff.truncated)
    return Display(f"{operation} {place.display_path} (+{diff.additions} -{diff.deletions})", (shown,))


def changes_display(
    results: Sequence[WriteResult], notes: Sequence[str] = (), max_lines: int = PREVIEW_LINES
) -> Display:
    """Changes that will be or were made: a line on all of them, a diff of each, and what is worth a note."""
    blocks: list[DisplayBlock] = [_diff_block(one, max_lines) for one in results if one.operation != "unchanged"]
    if notes:
        blocks.append(DisplayText("\n".join(notes)))
    return Display(_summary(results), tuple(blocks))


def change_result(result: WriteResult, notes: Sequence[str] = (), **extra: Any) -> ToolResult:
    """What was done to one file: for the model in a line, for the person with the diff; `more` is for machines."""
    diff, cut = _truncate_diff(result, RESULT_LINES)
    data = {
        "path": result.path,
        "operation": result.operation,
        "size": result.size,
        "additions": result.additions,
        "deletions": result.deletions,
        "diff": diff,
        "diff_truncated": cut,
        **extra,
    }
    told = "\n".join([_summary_line(result), *notes])
    return ToolResult("", "ok", told, changes_display([result], notes, RESULT_LINES), data)


def changes_result(results: Sequence[WriteResult], notes: Sequence[str], *, dry_run: bool) -> ToolResult:
    """What was done, or would be, to several files."""
    files = [_file_data(one) for one in results]
    data = {"ok": True, "dry_run": dry_run, "applied": len(files), "files": files}
    head = ["Dry run: the patch applies, and nothing was changed."] if dry_run else []
    told = "\n".join([*head, *(_summary_line(one) for one in results), *notes])
    return ToolResult("", "ok", told, changes_display(results, notes, RESULT_LINES), data)


def _file_data(result: WriteResult) -> dict[str, Any]:
    file: dict[str, Any] = {
        "path": result.path,
        "operation": result.operation,
        "additions": result.additions,
        "deletions": result.deletions,
        "bytes": result.size,
    }
    return {**file, "from": result.source} if result.source else file


def _summary(results: Sequence[WriteResult]) -> str:
    if len(results) == 1:
        return _summary_line(results[0])
    added, removed = sum(one.additions for one in results), sum(one.deletions for one in results)
    return f"{len(results)} files (+{added} -{removed})"


def _summary_line(result: WriteResult) -> str:
    name = f"{result.source} to {result.path}" if result.source else result.path
    return f"{result.operation} {name} (+{result.additions} -{result.deletions})"


def _diff_block(result: WriteResult, max_lines: int) -> DisplayDiff:
    text, cut = _truncate_diff(result, max_lines)
    return DisplayDiff(result.path, text, result.operation, result.additions, result.deletions, cut)


def _truncate_diff(result: WriteResult, max_lines: int) -> tuple[str, bool]:
    lines = result.diff.split("\n", max_lines)
    if len(lines) <= max_lines or not lines[-1]:
        text, cut = _truncate_characters(result.diff, max_lines)
        return text, cut or result.diff_truncated
    from ostler.text.truncate import omission_marker

    left_out = lines.pop().count("\n") + 1
    return _truncate_characters("\n".join([*lines, omission_marker(left_out, "lines of the diff"), ""]), max_lines)[
        0
    ], True


def _truncate_characters(diff: str, max_lines: int) -> tuple[str, bool]:
    """A diff of very long lines without its middle, and whether it has lost one."""
    if len(diff) <= max_lines * _CHARACTERS_PER_LINE:
        return diff, False
    from ostler.text.truncate import truncate_middle

    return truncate_middle(diff, max_lines * _CHARACTERS_PER_LINE, unit="characters of the diff").text, True
