"""The tool that replaces texts in a file."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import UNSET, UnsetType

from ostler.tools.changes import change_result, changes_shown
from ostler.tools.declared import Declared
from ostler.tools.editing.asked import Replace
from ostler.tools.editing.chosen import chosen
from ostler.tools.editing.foreseen import Foreseen, apply_as_shown
from ostler.tools.places import writing
from ostler.vocabulary.errors import ToolFailure
from ostler.vocabulary.permission import Permission
from ostler.vocabulary.seams import FileChange, Ground, ToolContext
from ostler.vocabulary.tools import ToolResult

if TYPE_CHECKING:
    from ostler.tools.editing.edits import Edited

_LARGE = 200_000


class EditParams(msgspec.Struct, weakref=True, eq=False):
    path: str
    old: str | UnsetType = UNSET
    new: str | UnsetType = UNSET
    replace_all: bool = False
    edits: Annotated[
        list[Replace], msgspec.Meta(description="several replacements, in order, instead of old and new")
    ] = []
    hunks: list[int] | None = None


class Edit(Declared[EditParams]):
    name = "edit"
    kind = "edit"
    params = EditParams
    unlisted = ("hunks",)

    def __init__(self) -> None:
        self._foreseen: Foreseen[tuple[FileChange, Edited]] = Foreseen()
        self._left: dict[str, int] = {}

    async def permission(self, params: EditParams, ground: Ground) -> Permission:
        place, needs = writing("edit", params.path, ground)
        title = f"edit {place.shown}"
        steps = _steps(params)
        if not place.inside:
            return Permission(title, needs)
        try:
            async with ground.writing():
                change, made = await _change(params.path, steps, ground)
                if params.hunks is not None:
                    (change,) = await chosen(params.hunks, [change], ground)
                written = await ground.apply([change], dry_run=True)
        except ToolFailure as failure:
            return self._foreseen.instead(params, failure, title, [place])
        self._foreseen.keep(params, (change, made))
        return Permission(title, needs, changes_shown(written, _notes(made)))

    async def run(self, params: EditParams, context: ToolContext) -> ToolResult:
        ground = context.ground
        change, made = self._foreseen.take(params)
        async with ground.writing():
            if params.hunks is None and await self._left_by_us(change, ground):
                change, made = await _change(params.path, _steps(params), ground)
            (written,) = await apply_as_shown(ground, [change])
        self._left[change.path] = hash(change.text)
        return change_result(written, _notes(made), replacements=made.count, matched=list(made.rules) or ["exact"])

    async def _left_by_us(self, change: FileChange, ground: Ground) -> bool:
        """Whether the file is another than was shown, but only by an edit of our own that ran meanwhile."""
        if change.path not in self._left:
            return False
        file = await ground.read_to_change(change.path)
        return file.version != change.base and hash(file.text) == self._left[change.path]


def _steps(params: EditParams) -> list[Replace]:
    """The replacements a call asks for, in either of its two forms."""
    single = params.old is not UNSET or params.new is not UNSET
    if params.edits and not single:
        return params.edits
    if params.edits:
        raise ToolFailure("give either old and new, or edits, not both", code="bad_arguments")
    if isinstance(params.old, UnsetType) or isinstance(params.new, UnsetType):
        missing = "new" if params.new is UNSET and single else "old"
        raise ToolFailure(f"{missing} is missing; give old and new, or a list of edits", code="bad_arguments")
    return [Replace(params.old, params.new, params.replace_all)]


async def _change(path: str, steps: list[Replace], ground: Ground) -> tuple[FileChange, "Edited"]:
    """What the steps make of a file; an empty `old` stands for the whole of a file that is empty or not there."""
    from ostler.tools.editing.edits import Edited, edited  # brings the ladder along that only an edit needs

    fills = len(steps) == 1 and not steps[0].old and bool(steps[0].new)
    if fills and not ground.place(path).exists:
        return FileChange(path, steps[0].new), Edited(steps[0].new, 1, ())
    file = await ground.read_to_change(path)
    if fills and not file.text:
        made = Edited(steps[0].new, 1, ())
    elif len(file.text) > _LARGE:
        made = await asyncio.to_thread(edited, file.path, file.text, steps)
    else:
        made = edited(file.path, file.text, steps)
    return FileChange(path, made.text, file.version), made


def _notes(made: "Edited") -> list[str]:
    notes = [f"matched: {rule}" for rule in made.rules]
    return [*notes, f"{made.count} places"] if made.count > 1 else notes
