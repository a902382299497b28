"""What an agent's own tool call would do, told in our needs, so that one policy judges agents too."""

from collections.abc import Sequence

import msgspec

from ostler.core.errors import ToolError
from ostler.core.permission import Need
from ostler.core.protocols import Workspace
from ostler.tools.bash import BashParams, BashTool
from ostler.tools.path_needs import read_needs, write_needs

_WRITE_KEYS = {"edit": "write", "move": "write"}
_READ_KEYS = {"read": "read", "search": "grep"}


class AgentCallNeeds:
    """Judges by kind, places and command, as far as the agent tells them.

    A kind is only a word: what shows a change to a file needs what a change needs, and what destroys is seen as that.
    """

    def __init__(self, workspace: Workspace, bash: BashTool) -> None:
        self._workspace = workspace
        self._bash = bash

    async def __call__(
        self, kind: str, title: str, paths: Sequence[str], command: str, edits: Sequence[str] = ()
    ) -> tuple[Need, ...]:
        changes = [need for path in edits for need in self._path_needs("edit", path)]
        if kind == "execute":
            return (*await self._command_needs(command or title), *changes)
        needs = [need for path in paths for need in self._path_needs(kind, path)] or [
            Need(_permission_key(kind), title)
        ]
        dangers = [need for need in await self._command_needs(command) if need.danger != "ordinary"] if command else []
        return tuple(dict.fromkeys([*needs, *dangers, *changes]))

    async def _command_needs(self, command: str) -> tuple[Need, ...]:
        """The agent runs it by itself, so no sandbox of ours holds it."""
        try:
            asked = await self._bash.permission(BashParams(command=command), self._workspace)
        except ToolError:
            return (Need("bash", command),)
        return tuple(msgspec.structs.replace(need, sandboxed=False) for need in asked.needs)

    def _path_needs(self, kind: str, path: str) -> tuple[Need, ...]:
        try:
            if kind in _WRITE_KEYS:
                return write_needs(_WRITE_KEYS[kind], path, self._workspace)[1]
            if kind == "delete":
                return write_needs("delete", path, self._workspace)[1]
            if kind in _READ_KEYS:
                return read_needs(_READ_KEYS[kind], path, self._workspace)[1]
        except ToolError as refusal:
            return (Need(_permission_key(kind), path, danger="deny", reason=str(refusal)),)
        return (Need(_permission_key(kind), path),)


def _permission_key(kind: str) -> str:
    return {**_WRITE_KEYS, **_READ_KEYS, "delete": "delete", "fetch": "network"}.get(kind, "agent")
