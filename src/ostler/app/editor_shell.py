"""Commands of a session in the terminals of its editor, where a person watches them."""

import asyncio
import os
import time
from typing import Any

from ostler.app.grounds import Shell
from ostler.faces.editor.premises import Editor
from ostler.vocabulary.errors import ToolFailure
from ostler.vocabulary.seams import Ran, Running
from ostler.wire.jsonrpc import PeerGone, RpcError

OUTPUT_BYTES = 1024 * 1024
LETTING_GO = 2.0


class EditorShell(Shell):
    """A shell whose foreground commands are the editor's; what must be confined runs here as ever."""

    def __init__(self, root: str, editor: Editor, *, sandbox: str) -> None:
        super().__init__(root, writable=True, sandbox=sandbox)
        self._folder = root
        self._editor = editor
        self._must = sandbox == "require"

    def another(self) -> "EditorShell":
        return EditorShell(self._folder, self._editor, sandbox=self._sandbox)

    @property
    def theirs(self) -> bool:
        """Whether the next command runs in a terminal of the editor's."""
        return self._editor.can.terminal and not self.read_only and not self._must

    async def run(self, running: Running) -> Ran:
        return await self._in_terminal(running) if self.theirs else await super().run(running)

    async def _in_terminal(self, running: Running) -> Ran:
        began = time.monotonic()
        terminal_id = await self._create(running)
        try:
            self._editor.terminal_created(running.command, terminal_id)
            ended = await self._ended(terminal_id, running.timeout)
            output = await self._ask("terminal/output", terminal_id)
        except (ToolFailure, asyncio.CancelledError):
            await self._let_go(terminal_id, kill=True)
            raise
        await self._let_go(terminal_id)
        return _ran(output, ended, time.monotonic() - began)

    async def _ended(self, terminal_id: str, seconds: float) -> dict[str, Any] | None:
        """How the command ended; None when it took too long and was killed."""
        try:
            async with asyncio.timeout(seconds):
                return await self._ask("terminal/wait_for_exit", terminal_id)
        except TimeoutError:
            await self._ask("terminal/kill", terminal_id)
            return None

    async def _create(self, running: Running) -> str:
        answer = await self._said(
            "terminal/create",
            command="/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh",
            args=["-c", running.command],
            env=[{"name": name, "value": value} for name, value in running.env.items()],
            cwd=os.path.normpath(os.path.join(self._folder, running.cwd)),
            outputByteLimit=OUTPUT_BYTES,
        )
        terminal_id = answer.get("terminalId")
        if not isinstance(terminal_id, str):
            raise ToolFailure("the editor gave no terminal", code="no_shell")
        return terminal_id

    async def _ask(self, method: str, terminal_id: str) -> dict[str, Any]:
        return await self._said(method, terminalId=terminal_id)

    async def _said(self, method: str, **params: Any) -> dict[str, Any]:
        try:
            answer = await self._editor.ask(method, **params)
        except (RpcError, PeerGone) as error:
            raise ToolFailure(f"the editor's terminal failed: {error}", code="no_shell") from None
        return answer if isinstance(answer, dict) else {}

    async def _let_go(self, terminal_id: str, *, kill: bool = False) -> None:
        """Always, whatever ended it; an editor that does not answer is not waited for long."""

        async def go() -> None:
            for method in (*(("terminal/kill",) if kill else ()), "terminal/release"):
                await self._ask(method, terminal_id)

        task = asyncio.ensure_future(go())
        await asyncio.wait({task}, timeout=LETTING_GO)
        if task.done() and not task.cancelled():
            task.exception()
        task.cancel()


def _ran(output: dict[str, Any], ended: dict[str, Any] | None, seconds: float) -> Ran:
    """Both answers may hold the exit code, and some editors put it into only one."""
    text, status = output.get("output"), output.get("exitStatus")
    told = [ended, status] if ended is not None else []
    code = next((one["exitCode"] for one in told if isinstance(one, dict) and one.get("exitCode") is not None), None)
    return Ran(
        text if isinstance(text, str) else "",
        "",
        code if isinstance(code, int) else None,
        seconds,
        timed_out=ended is None,
        cut=output.get("truncated") is True,
    )
