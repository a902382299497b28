"""Reduces a change to the selected hunks and tells the model which were omitted."""

from collections.abc import Container, Iterator, Sequence

import msgspec

from ostler.core.display import Display, DisplayDiff, DisplayText
from ostler.core.errors import ToolError
from ostler.core.protocols import FileChange, Workspace, WriteResult
from ostler.core.tools import ToolResult
from ostler.text.hunks import apply_selected_hunks, split_hunks
from ostler.text.truncate import truncate_middle

MAX_NOTE_CHARACTERS = 8_000


async def select_hunks(
    selected: Container[int], changes: Sequence[FileChange], workspace: Workspace
) -> list[FileChange]:
    """Return the changes with only the selected hunks (numbered from 1 over all changes). Raises `ToolError`."""
    reduced: list[FileChange] = []
    previous = 0
    for change, written in zip(changes, await workspace.apply(changes, dry_run=True), strict=True):
        if written.operation == "unchanged":
            continue
        last = previous + len(split_hunks(written.diff))
        own = {number - previous for number in range(previous + 1, last + 1) if number in selected}
        if own:
            complete = len(own) == last - previous
            reduced.append(change if complete else await _partial_change(own, change, written, workspace))
        previous = last
    if not reduced:
        raise ToolError("no hunk of this change was selected", code="bad_arguments")
    return reduced


def text_with_hunks(selected: Container[int], before: str, diff: str) -> str:
    """Apply the selected hunks of a diff to a text. Raises `ToolError`."""
    try:
        return apply_selected_hunks(before, diff, selected)
    except ValueError as error:
        raise ToolError(f"the hunks no longer apply: {error}", code="changed_on_disk") from None


async def _partial_change(
    selected: Container[int], change: FileChange, result: WriteResult, workspace: Workspace
) -> FileChange:
    before = (await workspace.read_for_edit(change.path)).text
    return msgspec.structs.replace(change, text=text_with_hunks(selected, before, result.diff))


def with_selection_note(result: ToolResult, preview: Display, selected: Container[int]) -> ToolResult:
    """Return the result with a note for the model that lists the applied and the omitted hunks."""
    numbered = list(enumerate(_hunks_with_paths(preview), 1))
    applied = [hunk for number, hunk in numbered if number in selected]
    omitted = [hunk for number, hunk in numbered if number not in selected]
    head = f"The user selected {len(applied)} of {len(numbered)} hunks; only these were applied:"
    text = f"{head}\n{_join_hunks(applied)}\nNot applied, because the user did not want it:\n{_join_hunks(omitted)}"
    note = DisplayText(f"{len(applied)} of {len(numbered)} hunks, as you chose")
    display = Display(result.for_human.summary, (*result.for_human.blocks, note))
    return msgspec.structs.replace(result, for_model=f"{result.for_model}\n{text}", for_human=display)


def _hunks_with_paths(preview: Display) -> Iterator[str]:
    """Yield every hunk below the name of its file."""
    for block in preview.blocks:
        if isinstance(block, DisplayDiff):
            yield from (f"{block.path} ({block.operation})\n{hunk}" for hunk in split_hunks(block.diff))


def _join_hunks(hunks: Sequence[str]) -> str:
    return truncate_middle("".join(hunks), MAX_NOTE_CHARACTERS).text.rstrip("\n")
