"""Computes the permissions that an ACP agent's own tool call needs."""

from collections.abc import Sequence

import msgspec

from ostler.core.errors import ToolError
from ostler.core.permission import UNKNOWN_PROGRAM, Need
from ostler.core.protocols import Workspace
from ostler.tools.bash import BashParams, BashTool
from ostler.tools.path_needs import read_needs, write_needs

_WRITE_KEYS = {"edit": "write", "move": "write", "delete": "delete"}
_READ_KEYS = {"read": "read", "search": "grep"}
_NEEDS_PATH = frozenset(["read", "edit", "delete", "move"])
_NO_COMMAND = "the agent does not say which command it would run"
_NO_PATH = "the agent does not say which path it would access"


class AgentCallNeeds:
    """Computes needs from the kind, paths and command of a call, as far as the agent reports them.

    The kind is not trusted: a call that shows an edit needs write permission, commands are checked for dangers, and
    a path outside the workspace needs permission in a call of any kind. File access without a path is denied, and
    so is an execution without a command.
    """

    def __init__(self, workspace: Workspace, bash: BashTool) -> None:
        self._workspace = workspace
        self._bash = bash

    async def __call__(
        self,
        kind: str,
        title: str,
        paths: Sequence[str],
        command: str,
        edits: Sequence[str] = (),
        hints: Sequence[str] = (),
    ) -> tuple[Need, ...]:
        """Return the needs; `hints` are lines of text in which only destructive commands matter."""
        edit_needs = [need for path in edits for need in self._path_needs("edit", path)]
        if kind == "execute":
            outside = [need for path in paths for need in self._path_needs("read", path)[1:]]
            return (*await self._execution_needs(command, title, hints), *outside, *edit_needs)
        needs = [need for path in paths for need in self._path_needs(kind, path)] or [_need_without_path(kind, title)]
        dangers = [need for need in await self._command_needs(command) if need.danger != "ordinary"] if command else []
        return tuple(dict.fromkeys([*needs, *dangers, *edit_needs]))

    async def _execution_needs(self, command: str, title: str, hints: Sequence[str]) -> list[Need]:
        """Return the needs of a command; without one, the title or a hint must be a command line of known programs."""
        hinted = [await self._command_needs(hint) for hint in hints]
        destructive = [need for needs in hinted for need in needs if need.danger in ("confirm", "deny")]
        if command.strip():
            return [*await self._command_needs(command), *destructive]
        needs = await self._command_needs(title) if title.strip() else ()
        if not any(map(_is_known, (needs, *hinted))):
            needs = (Need("bash", title, danger="deny", reason=_NO_COMMAND),)
        return [*needs, *destructive]

    async def _command_needs(self, command: str) -> tuple[Need, ...]:
        """Return the needs of a command, which the agent runs outside our sandbox."""
        try:
            permission = await self._bash.permission(BashParams(command=command), self._workspace)
        except ToolError:
            return (Need("bash", command),)
        return tuple(msgspec.structs.replace(need, sandboxed=False) for need in permission.needs)

    def _path_needs(self, kind: str, path: str) -> tuple[Need, ...]:
        try:
            if kind in _WRITE_KEYS:
                return write_needs(_WRITE_KEYS[kind], path, self._workspace)[1]
            if kind in _READ_KEYS:
                return read_needs(_READ_KEYS[kind], path, self._workspace)[1]
            if "://" not in path:
                need, *outside = read_needs("read", path, self._workspace)[1]
                return (Need(_permission_key(kind), need.subject), *outside)
        except ToolError as error:
            return (Need(_permission_key(kind), path, danger="deny", reason=str(error)),)
        return (Need(_permission_key(kind), path),)


def _is_known(needs: Sequence[Need]) -> bool:
    return bool(needs) and not any(need.danger == UNKNOWN_PROGRAM for need in needs)


def _need_without_path(kind: str, title: str) -> Need:
    if kind in _NEEDS_PATH:
        return Need(_permission_key(kind), title, danger="deny", reason=_NO_PATH)
    return Need(_permission_key(kind), title)


def _permission_key(kind: str) -> str:
    return {**_WRITE_KEYS, **_READ_KEYS, "fetch": "network"}.get(kind, "agent")
