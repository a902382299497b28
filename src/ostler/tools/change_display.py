"""Builds the preview and the result of file changes."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

from ostler.core.display import Display, DisplayBlock, DisplayDiff, DisplayText
from ostler.core.errors import PathError
from ostler.core.protocols import ResolvedPath, Workspace, WriteResult
from ostler.core.tools import ToolResult
from ostler.workspace.newlines import with_newline

PREVIEW_LINES = 4_000  # the user approves the complete diff
RESULT_LINES = 400
_LARGE_TEXT = 200_000
_CHARACTERS_PER_LINE = 250  # a diff with more characters per line on average is truncated in the middle


async def change_preview(workspace: Workspace, place: ResolvedPath, new_text: str) -> Display:
    """Return the preview of writing `new_text`: path, operation, line counts and diff.

    Raises `PathError` if the file changed on disk since it was read.
    """
    if not place.in_workspace:
        return Display()
    from ostler.text.diff import unified_diff  # imported late: only changes need it

    before = ""
    try:
        if place.exists:
            file = await workspace.read_for_edit(place.absolute)
            before, new_text = file.text, with_newline(new_text, file.newline)  # as it will be written
    except PathError as error:
        if error.fault.code == "changed_on_disk":
            raise
        return Display(str(error))
    compute = partial(unified_diff, before, new_text, place.display_path, max_lines=PREVIEW_LINES)
    diff = await asyncio.to_thread(compute) if len(before) + len(new_text) > _LARGE_TEXT else compute()
    operation: Literal["updated", "created"] = "updated" if place.exists else "created"
    text, truncated = _truncate_characters(diff.text, PREVIEW_LINES)
    truncated = truncated or diff.truncated
    block = DisplayDiff(place.display_path, text, operation, diff.additions, diff.deletions, truncated)
    return Display(f"{operation} {place.display_path} (+{diff.additions} -{diff.deletions})", (block,))


def changes_display(
    results: Sequence[WriteResult], notes: Sequence[str] = (), max_lines: int = PREVIEW_LINES
) -> Display:
    """Return the display of planned or applied changes: a summary, a diff of each file, and the notes."""
    blocks: list[DisplayBlock] = [
        _diff_block(result, max_lines) for result in results if result.operation != "unchanged"
    ]
    if notes:
        blocks.append(DisplayText("\n".join(notes)))
    return Display(_summary(results), tuple(blocks))


def change_result(result: WriteResult, notes: Sequence[str] = (), **extra: Any) -> ToolResult:
    """Return the result of changing one file; `extra` is added to its data."""
    diff, truncated = _truncate_diff(result, RESULT_LINES)
    data = {
        "path": result.path,
        "operation": result.operation,
        "size": result.size,
        "additions": result.additions,
        "deletions": result.deletions,
        "diff": diff,
        "diff_truncated": truncated,
        **extra,
    }
    text = "\n".join([_summary_line(result), *notes])
    return ToolResult("", "ok", text, changes_display([result], notes, RESULT_LINES), data)


def changes_result(results: Sequence[WriteResult], notes: Sequence[str], *, dry_run: bool) -> ToolResult:
    """Return the result of changing several files, or of a dry run."""
    files = [_file_data(result) for result in results]
    data = {"ok": True, "dry_run": dry_run, "applied": len(files), "files": files}
    head = ["Dry run: the patch applies; nothing was changed."] if dry_run else []
    text = "\n".join([*head, *(_summary_line(result) for result in results), *notes])
    return ToolResult("", "ok", text, changes_display(results, notes, RESULT_LINES), data)


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
    added, removed = sum(result.additions for result in results), sum(result.deletions for result in results)
    return f"{len(results)} files (+{added} -{removed})"


def _summary_line(result: WriteResult) -> str:
    name = f"{result.source} to {result.path}" if result.source else result.path
    return f"{result.operation} {name} (+{result.additions} -{result.deletions})"


def _diff_block(result: WriteResult, max_lines: int) -> DisplayDiff:
    text, truncated = _truncate_diff(result, max_lines)
    return DisplayDiff(result.path, text, result.operation, result.additions, result.deletions, truncated)


def _truncate_diff(result: WriteResult, max_lines: int) -> tuple[str, bool]:
    lines = result.diff.split("\n", max_lines)
    if len(lines) <= max_lines or not lines[-1]:
        text, truncated = _truncate_characters(result.diff, max_lines)
        return text, truncated or result.diff_truncated
    from ostler.text.truncate import omission_marker

    omitted = lines.pop().count("\n") + 1
    text = "\n".join([*lines, omission_marker(omitted, "lines of the diff"), ""])
    return _truncate_characters(text, max_lines)[0], True


def _truncate_characters(diff: str, max_lines: int) -> tuple[str, bool]:
    """Return the diff, without its middle if its lines are very long, and whether it was truncated."""
    if len(diff) <= max_lines * _CHARACTERS_PER_LINE:
        return diff, False
    from ostler.text.truncate import truncate_middle

    return truncate_middle(diff, max_lines * _CHARACTERS_PER_LINE, unit="characters of the diff").text, True
