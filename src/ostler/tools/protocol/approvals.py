"""An edit that a person allowed when the agent showed it passes once when the agent makes it."""

from typing import Any, cast

from ostler.vocabulary.permission import Decision, Permission
from ostler.vocabulary.seams import Ground, Stage, ToolRunner
from ostler.vocabulary.tools import ToolCall, ToolResult

WRITE = "write_text_file"
_MOST = 200


class Approvals:
    """What was allowed and not yet made: places with the text that was shown."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._edits: list[tuple[str, str]] = []

    def note(self, path: str, text: str) -> None:
        self._edits = [*self._edits, (self._ground.place(path).absolute, text)][-_MOST:]

    def take(self, path: str, text: str) -> bool:
        """Whether just this was allowed; once."""
        edit = (self._ground.place(path).absolute, text)
        if edit not in self._edits:
            return False
        self._edits.remove(edit)
        return True

    def forget(self) -> None:
        """The turn is over, and with it what was allowed in it."""
        self._edits = []


class ApprovedOnce:
    """The one door, where a write that was allowed already is not asked about again."""

    def __init__(self, door: ToolRunner, approvals: Approvals) -> None:
        self._door = door
        self._approvals = approvals

    async def open(self, stage: Stage) -> None:
        await self._door.open(stage)

    def specs(self) -> Any:
        return self._door.specs()

    async def run(self, call: ToolCall, stage: Stage) -> ToolResult:
        path, text = call.arguments.get("path"), call.arguments.get("content")
        if call.tool == WRITE and isinstance(path, str) and isinstance(text, str) and self._approvals.take(path, text):
            stage = cast(Stage, _Passing(stage))
        return await self._door.run(call, stage)

    async def aclose(self) -> None:
        await self._door.aclose()


class _Passing:
    """A stage where what is not dangerous was decided before."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stage, name)

    async def decide(self, permission: Permission) -> Decision:
        if permission.dangerous:
            return await self._stage.decide(permission)
        return Decision("allow", by="person", reason="you allowed this edit when the agent showed it")
