"""Tool calls without a model, for `ostler tool call` and `ostler tool calls`."""

import contextlib
from collections.abc import Callable
from typing import Any

import msgspec

from ostler.core.errors import ToolError
from ostler.core.protocols import Session, Workspace
from ostler.core.tools import ToolCall, ToolResult
from ostler.tools.host import LocalToolHost, failed_result

# Calls whose effect would be lost when a session of one call ends.
_LOST_WITH_SESSION: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "bash": ("a background command", lambda params: params.background and params.action == "run"),
    "write_chunk": (
        "an unfinished file",
        lambda params: params.mode == "gather" and not params.final,
    ),
}


class ManualCalls:
    """A session without a model; the caller makes the tool calls."""

    def __init__(self, session: Session, host: LocalToolHost, workspace: Workspace) -> None:
        self.session = session
        self._host = host
        self._workspace = workspace

    async def call(self, call: ToolCall) -> ToolResult:
        """Make one of several calls, which share what they read, plan and start."""
        return await self.session.call(call)

    async def call_once(self, call: ToolCall) -> ToolResult:
        """Make the only call of the session.

        It may overwrite a file that was not read before. A call whose effect only a later call could use fails.
        """
        with contextlib.suppress(ToolError):  # the tool host reports the error
            resolved = await self._host.resolve(call)
            name, params = resolved.tool.spec.name, resolved.params
            what, is_lost = _LOST_WITH_SESSION.get(name, ("", lambda params: False))
            if is_lost(params):
                return failed_result(call.id, _no_later_call_error(what))
            if name in ("write", "write_chunk") and self._workspace.resolve(params.path).exists:
                await self._workspace.read_text(params.path)
        return _without_output_file(await self.session.call(call))


def _without_output_file(result: ToolResult) -> ToolResult:
    """Remove the path of the file with the full output, which is deleted with the session."""
    output_file = result.data.get("spill") if isinstance(result.data, dict) else ""
    if not output_file:
        return result
    text = result.for_model.replace(output_file, "deleted after this call; redirect the output to a file to keep it")
    return msgspec.structs.replace(result, for_model=text, data={**result.data, "spill": ""})


def _no_later_call_error(what: str) -> ToolError:
    message = f"this call starts {what}, which only a later call of the same session could use"
    return ToolError(message, code="alone", hint="use `ostler tool calls` with one call per line")
