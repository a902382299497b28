"""Keeps file requests to the editor and commands apart: a command could make a path lead out of the workspace."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Protocol
from weakref import WeakSet

from ostler.core.errors import ToolError

WRITE_WAIT = 30.0


class CommandSource(Protocol):
    """A shell that may have background commands."""

    def is_busy(self) -> bool: ...


class EditorFileGate:
    """Says when files may be accessed through the editor; shared by all its sessions.

    The editor follows a path after Ostler checked it, so no command may run meanwhile. While one runs, files are only
    accessed on disk, where check and use are one step.
    """

    def __init__(self) -> None:
        self._shells: WeakSet[CommandSource] = WeakSet()
        self._foreground = 0
        self.started = 0  # commands so far; an answer that arrives after another start cannot be trusted
        self._writes: set[asyncio.Future[Any]] = set()

    def add_shell(self, shell: CommandSource) -> None:
        self._shells.add(shell)

    @property
    def is_open(self) -> bool:
        """Whether no command is running."""
        return not self._foreground and not any(shell.is_busy() for shell in self._shells)

    @asynccontextmanager
    async def command(self) -> AsyncIterator[None]:
        """Close the gate for a foreground command, or for the start of a background command.

        Raises `ToolError` if the editor does not finish a write.
        """
        self._foreground += 1
        self.started += 1
        try:
            if self._writes and (await asyncio.wait(set(self._writes), timeout=WRITE_WAIT))[1]:
                raise ToolError(
                    "the editor has not finished writing a file, so no command can run yet", hint="try again later"
                )
            yield
        finally:
            self._foreground -= 1

    async def write(self, request: Coroutine[Any, Any, Any]) -> Any:
        """Send a write request. Commands wait for the answer, also if the caller is cancelled."""
        task = asyncio.ensure_future(request)
        self._writes.add(task)
        task.add_done_callback(self._on_written)
        return await asyncio.shield(task)

    def _on_written(self, task: "asyncio.Future[Any]") -> None:
        self._writes.discard(task)
        if not task.cancelled():
            task.exception()  # a cancelled caller does not take it
