"""A change of which a person took only some hunks: what is left of it, and what the model is told."""

from collections.abc import Container, Iterator, Sequence

import msgspec

from ostler.text.cut import cut_middle
from ostler.text.hunks import hunks_of, with_hunks
from ostler.vocabulary.display import DiffShown, Display, Note
from ostler.vocabulary.errors import ToolFailure
from ostler.vocabulary.seams import FileChange, Ground, Written
from ostler.vocabulary.tools import ToolResult

TOLD_CHARACTERS = 8_000


async def chosen(taken: Container[int], changes: Sequence[FileChange], ground: Ground) -> list[FileChange]:
    """What the hunks taken make of some changes; they are counted from 1 over all that is shown of these."""
    left: list[FileChange] = []
    number = 0
    for change, written in zip(changes, await ground.apply(changes, dry_run=True), strict=True):
        if written.operation == "unchanged":
            continue
        last = number + len(hunks_of(written.diff))
        own = {place - number for place in range(number + 1, last + 1) if place in taken}
        if own:
            whole = len(own) == last - number
            left.append(change if whole else await _some(own, change, written, ground))
        number = last
    if not left:
        raise ToolFailure("none of the hunks of this change was taken", code="bad_arguments")
    return left


def chosen_text(taken: Container[int], before: str, diff: str) -> str:
    """What the hunks taken make of a text."""
    try:
        return with_hunks(before, diff, taken)
    except ValueError as error:
        raise ToolFailure(f"the hunks do not fit any more: {error}", code="changed_on_disk") from None


async def _some(taken: Container[int], change: FileChange, written: Written, ground: Ground) -> FileChange:
    before = (await ground.read_to_change(change.path)).text
    return msgspec.structs.replace(change, text=chosen_text(taken, before, written.diff))


def told(result: ToolResult, shown: Display, taken: Container[int]) -> ToolResult:
    """The result, and with it which hunks were taken and which were not, to the letter."""
    numbered = list(enumerate(_named(shown), 1))
    made = [hunk for number, hunk in numbered if number in taken]
    left = [hunk for number, hunk in numbered if number not in taken]
    head = f"The user took {len(made)} of the {len(numbered)} hunks of this change, and only these were made:"
    said = f"{head}\n{_cut(made)}\nLeft out, and not made, because the user did not want it:\n{_cut(left)}"
    note = Note(f"{len(made)} of {len(numbered)} hunks, as you chose")
    display = Display(result.for_human.summary, (*result.for_human.blocks, note))
    return msgspec.structs.replace(result, for_model=f"{result.for_model}\n{said}", for_human=display)


def _named(shown: Display) -> Iterator[str]:
    """Every hunk below the name of its file."""
    for part in shown.blocks:
        if isinstance(part, DiffShown):
            yield from (f"{part.path} ({part.operation})\n{hunk}" for hunk in hunks_of(part.diff))


def _cut(hunks: Sequence[str]) -> str:
    return cut_middle("".join(hunks), TOLD_CHARACTERS).text.rstrip("\n")
