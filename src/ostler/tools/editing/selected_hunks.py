"""A change of which a person took only some hunks: what is left of it, and what the model is told."""

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
    """What the hunks taken make of some changes; they are counted from 1 over all that is shown of these."""
    left: list[FileChange] = []
    number = 0
    for change, written in zip(changes, await workspace.apply(changes, dry_run=True), strict=True):
        if written.operation == "unchanged":
            continue
        last = number + len(split_hunks(written.diff))
        own = {place - number for place in range(number + 1, last + 1) if place in selected}
        if own:
            whole = len(own) == last - number
            left.append(change if whole else await _partial_change(own, change, written, workspace))
        number = last
    if not left:
        raise ToolError("none of the hunks of this change was taken", code="bad_arguments")
    return left


def text_with_hunks(selected: Container[int], before: str, diff: str) -> str:
    """What the hunks taken make of a text."""
    try:
        return apply_selected_hunks(before, diff, selected)
    except ValueError as error:
        raise ToolError(f"the hunks do not fit any more: {error}", code="changed_on_disk") from None


async def _partial_change(
    selected: Container[int], change: FileChange, result: WriteResult, workspace: Workspace
) -> FileChange:
    before = (await workspace.read_for_edit(change.path)).text
    return msgspec.structs.replace(change, text=text_with_hunks(selected, before, result.diff))


def with_selection_note(result: ToolResult, preview: Display, selected: Container[int]) -> ToolResult:
    """The result, and with it which hunks were taken and which were not, to the letter."""
    numbered = list(enumerate(_hunks_with_paths(preview), 1))
    made = [hunk for number, hunk in numbered if number in selected]
    left = [hunk for number, hunk in numbered if number not in selected]
    head = f"The user took {len(made)} of the {len(numbered)} hunks of this change, and only these were made:"
    said = (
        f"{head}\n{_join_hunks(made)}\nLeft out, and not made, because the user did not want it:\n{_join_hunks(left)}"
    )
    note = DisplayText(f"{len(made)} of {len(numbered)} hunks, as you chose")
    display = Display(result.for_human.summary, (*result.for_human.blocks, note))
    return msgspec.structs.replace(result, for_model=f"{result.for_model}\n{said}", for_human=display)


def _hunks_with_paths(preview: Display) -> Iterator[str]:
    """Every hunk below the name of its file."""
    for part in preview.blocks:
        if isinstance(part, DisplayDiff):
            yield from (f"{part.path} ({part.operation})\n{hunk}" for hunk in split_hunks(part.diff))


def _join_hunks(hunks: Sequence[str]) -> str:
    return truncate_middle("".join(hunks), MAX_NOTE_CHARACTERS).text.rstrip("\n")
