"""Runs a session's commands in the editor's terminals."""

import asyncio
import os
import time
from collections.abc import Sequence
from typing import Any

from ostler.core.commands import CommandRequest, CommandResult
from ostler.core.errors import ToolError
from ostler.frontends.acp_agent.editor_client import EditorClient
from ostler.frontends.acp_agent.editor_file_gate import EditorFileGate
from ostler.processes.command_environment import withheld_variables
from ostler.wire.jsonrpc import PeerClosed, RpcError
from ostler.workspace.session_workspace import SessionShell

MAX_OUTPUT_BYTES = 1024 * 1024
RELEASE_TIMEOUT = 2.0


class EditorShell(SessionShell):
    """A shell that runs foreground commands in the editor's terminals unless they must be sandboxed.

    A command that is allowed only with the workspace read-only runs in Ostler's sandbox.
    """

    def __init__(
        self, root: str, editor: EditorClient, gate: EditorFileGate, *, sandbox: str, readable: Sequence[str] = ()
    ) -> None:
        super().__init__(root, writable=True, sandbox=sandbox, readable=readable)
        self._folder = root
        self._editor = editor
        self.gate = gate
        gate.add_shell(self)
        self._requires_sandbox = sandbox == "require"

    def for_child(self) -> "EditorShell":
        return EditorShell(self._folder, self._editor, self.gate, sandbox=self._sandbox, readable=self._readable)

    @property
    def runs_in_editor(self) -> bool:
        """Whether the next command runs in a terminal of the editor."""
        return self._editor.capabilities.terminal and not self.read_only and not self._requires_sandbox

    async def run(self, request: CommandRequest) -> CommandResult:
        async with self.gate.command():
            if self.runs_in_editor and not request.read_only:
                return await self._run_in_terminal(request)
            return await super().run(request)

    async def start(self, request: CommandRequest) -> str:
        async with self.gate.command():
            return await super().start(request)

    async def _run_in_terminal(self, request: CommandRequest) -> CommandResult:
        start = time.monotonic()
        terminal_id = await self._create_terminal(request)
        try:
            self._editor.on_terminal_created(request.command, terminal_id)
            exit_info = await self._wait_for_exit(terminal_id, request.timeout)
            output = await self._request(
                "terminal/output",
                terminalId=terminal_id,
                max_response_bytes=8 * MAX_OUTPUT_BYTES,  # an escaped character has six bytes
                shorten=True,
            )
        except (ToolError, asyncio.CancelledError):
            await self._release(terminal_id, kill=True)
            raise
        await self._release(terminal_id)
        return _make_result(output, exit_info, time.monotonic() - start)

    async def _wait_for_exit(self, terminal_id: str, timeout: float) -> dict[str, Any] | None:
        """Return the editor's exit information, or None if the command timed out and was killed."""
        try:
            async with asyncio.timeout(timeout):
                return await self._request_terminal("terminal/wait_for_exit", terminal_id)
        except TimeoutError:
            await self._request_terminal("terminal/kill", terminal_id)
            return None

    async def _create_terminal(self, request: CommandRequest) -> str:
        answer = await self._request(
            "terminal/create",
            command="/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh",
            args=["-c", request.command],
            env=[{"name": name, "value": value} for name, value in _terminal_environment(request).items()],
            cwd=os.path.normpath(os.path.join(self._folder, request.cwd)),
            outputByteLimit=MAX_OUTPUT_BYTES,
        )
        terminal_id = answer.get("terminalId")
        if not isinstance(terminal_id, str):
            raise ToolError("the editor did not create a terminal", code="no_shell")
        return terminal_id

    async def _request_terminal(self, method: str, terminal_id: str) -> dict[str, Any]:
        return await self._request(method, terminalId=terminal_id)

    async def _request(self, method: str, **params: Any) -> dict[str, Any]:
        try:
            answer = await self._editor.request(method, **params)
        except (RpcError, PeerClosed) as error:
            raise ToolError(f"the editor's terminal failed: {error}", code="no_shell") from None
        return answer if isinstance(answer, dict) else {}

    async def _release(self, terminal_id: str, *, kill: bool = False) -> None:
        """Release the terminal, but wait only briefly for an editor that does not answer."""

        async def release() -> None:
            for method in (*(("terminal/kill",) if kill else ()), "terminal/release"):
                await self._request_terminal(method, terminal_id)

        task = asyncio.ensure_future(release())
        await asyncio.wait({task}, timeout=RELEASE_TIMEOUT)
        if task.done() and not task.cancelled():
            task.exception()
        task.cancel()


def _terminal_environment(request: CommandRequest) -> dict[str, str]:
    """Return the variables to set: a terminal has the editor's environment, so those with secrets are made empty."""
    return {**dict.fromkeys(withheld_variables(os.environ), ""), **request.env}


def _make_result(output: dict[str, Any], exit_info: dict[str, Any] | None, seconds: float) -> CommandResult:
    """Combine the two answers: the exit code may be in only one of them, depending on the editor."""
    text, status = output.get("output"), output.get("exitStatus")
    sources = [exit_info, status] if exit_info is not None else []
    codes = (item.get("exitCode") for item in sources if isinstance(item, dict))
    code = next((code for code in codes if code is not None), None)
    text, shortened = _last_bytes(text if isinstance(text, str) else "", MAX_OUTPUT_BYTES)
    return CommandResult(
        text,
        "",
        code if isinstance(code, int) else None,
        seconds,
        timed_out=exit_info is None,
        truncated=shortened or output.get("truncated") is True,
    )


def _last_bytes(text: str, limit: int) -> tuple[str, bool]:
    """Return the end of a text and whether it was cut; some editors ignore the limit."""
    data = text[-limit:].encode("utf-8", "replace")
    if len(text) <= limit and len(data) <= limit:
        return text, False
    return data[-limit:].decode("utf-8", "ignore"), True
