"""What an agent's own tool call would do, told in our needs, so that one policy judges agents too."""

from collections.abc import Sequence

import msgspec

from ostler.tools.bash import Bash, BashParams
from ostler.tools.places import reading, writing
from ostler.vocabulary.errors import ToolFailure
from ostler.vocabulary.permission import Need
from ostler.vocabulary.seams import Ground

_WRITES = {"edit": "write", "move": "write"}
_READS = {"read": "read", "search": "grep"}


class Foresight:
    """Judges by kind, places and command, as far as the agent tells them.

    A kind is only a word: what shows a change to a file needs what a change needs, and what destroys is seen as that.
    """

    def __init__(self, ground: Ground, bash: Bash) -> None:
        self._ground = ground
        self._bash = bash

    async def __call__(
        self, kind: str, title: str, paths: Sequence[str], command: str, edits: Sequence[str] = ()
    ) -> tuple[Need, ...]:
        changes = [need for path in edits for need in self._of_path("edit", path)]
        if kind == "execute":
            return (*await self._of_command(command or title), *changes)
        needs = [need for path in paths for need in self._of_path(kind, path)] or [Need(_key(kind), title)]
        dangers = [need for need in await self._of_command(command) if need.danger != "ordinary"] if command else []
        return tuple(dict.fromkeys([*needs, *dangers, *changes]))

    async def _of_command(self, command: str) -> tuple[Need, ...]:
        """The agent runs it by itself, so no sandbox of ours holds it."""
        try:
            asked = await self._bash.permission(BashParams(command=command), self._ground)
        except ToolFailure:
            return (Need("bash", command),)
        return tuple(msgspec.structs.replace(need, confined=False) for need in asked.needs)

    def _of_path(self, kind: str, path: str) -> tuple[Need, ...]:
        try:
            if kind in _WRITES:
                return writing(_WRITES[kind], path, self._ground)[1]
            if kind == "delete":
                return writing("delete", path, self._ground)[1]
            if kind in _READS:
                return reading(_READS[kind], path, self._ground)[1]
        except ToolFailure as refusal:
            return (Need(_key(kind), path, danger="deny", why=str(refusal)),)
        return (Need(_key(kind), path),)


def _key(kind: str) -> str:
    return {**_WRITES, **_READS, "delete": "delete", "fetch": "network"}.get(kind, "agent")
