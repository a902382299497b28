"""Prints a recorded ACP connection as `ostler acp run` would have printed it."""

import sys
from typing import Any

import msgspec

from ostler.core.permission import Decision
from ostler.frontends.acp_cli.live_check import LiveProtocolCheck
from ostler.frontends.acp_cli.recording import RecordedFrame, read_recording
from ostler.frontends.acp_cli.text_output import LabelledOutput, PlainOutput
from ostler.text.stderr import notify
from ostler.wire.acp import ToolCallFields
from ostler.wire.acp_decode import decode_lenient
from ostler.wire.acp_requests import CreateTerminalRequest, PromptRequest, PromptResponse, RequestPermissionRequest
from ostler.wire.acp_tool_calls import ToolCallTracker
from ostler.wire.acp_updates import decode_update


class AcpReplay:
    """Prints the frames of a log, which must be passed in order."""

    def __init__(self, output: PlainOutput) -> None:
        self._output = output
        self._calls = ToolCallTracker()
        self._requests: dict[tuple[str, Any], tuple[str, dict[str, Any]]] = {}

    def on_frame(self, recorded: RecordedFrame) -> None:
        frame, method = recorded.frame, recorded.frame.get("method")
        params = frame.get("params")
        params = params if isinstance(params, dict) else {}
        if isinstance(method, str):
            if "id" in frame:
                self._requests[recorded.sender, str(frame["id"])] = (method, params)
            self._on_message(method, params)
            return
        requester = "agent" if recorded.sender == "client" else "client"
        request = self._requests.pop((requester, str(frame.get("id"))), None)
        if request:
            self._on_response(*request, frame)

    def _on_message(self, method: str, params: dict[str, Any]) -> None:
        if method == "session/prompt":
            self._calls = ToolCallTracker()
            self._output.start_turn()
            if isinstance(self._output, LabelledOutput):
                parts = [block.text or f"[{block.type}]" for block in decode_lenient(PromptRequest, params).prompt]
                self._output.write_labelled("prompt", " ".join(parts))
        elif method == "session/update":
            update = decode_update(params.get("update"))
            call = self._calls.upsert(update) if isinstance(update, ToolCallFields) else None
            self._output.on_update(update, call)

    def _on_response(self, method: str, params: dict[str, Any], frame: dict[str, Any]) -> None:
        result, error = frame.get("result"), frame.get("error")
        if error is not None:
            if isinstance(self._output, LabelledOutput):
                self._output.write_labelled("error", f"{method}: {msgspec.json.encode(error).decode()}")
        elif method == "session/prompt":
            self._output.finish()
            if isinstance(self._output, LabelledOutput):
                response = decode_lenient(PromptResponse, result)
                self._output.write_usage(response.usage)
                self._output.write_labelled("stop", response.stop_reason)
        elif method == "session/request_permission":
            self._on_permission(params, result)
        elif method.startswith("terminal/") and isinstance(result, dict):
            self._on_terminal(method, params, result)

    def _on_permission(self, params: dict[str, Any], result: Any) -> None:
        request = decode_lenient(RequestPermissionRequest, params)
        outcome = result.get("outcome", {}) if isinstance(result, dict) else {}
        chosen = next((option for option in request.options if option.option_id == outcome.get("optionId")), None)
        allowed = chosen is not None and chosen.kind.startswith("allow")
        call = self._calls.upsert(request.tool_call)
        decision = Decision("allow" if allowed else "deny" if chosen else "cancel")
        self._output.on_decision(msgspec.structs.replace(request, tool_call=call), decision)

    def _on_terminal(self, method: str, params: dict[str, Any], result: dict[str, Any]) -> None:
        terminal = str(result.get("terminalId") or params.get("terminalId"))
        match method:
            case "terminal/create":
                request = decode_lenient(CreateTerminalRequest, params)
                self._output.on_terminal("created", terminal, " ".join((request.command, *request.args)))
            case "terminal/output":
                self._output.on_terminal("output", terminal, str(result.get("output", "")))
            case "terminal/wait_for_exit":
                self._output.on_terminal("exited", terminal, str(result.get("signal") or result.get("exitCode")))
            case "terminal/release":
                self._output.on_terminal("released", terminal)


def replay(name: str, output: str, *, check: bool) -> int:
    """Print a log and return the exit status; with `check`, 1 if a frame violates the protocol."""
    printer = LabelledOutput(sys.stdout) if output == "text" else PlainOutput(sys.stdout)
    acp_replay = AcpReplay(printer)
    checks = LiveProtocolCheck(notify) if check else None
    for recorded in read_recording(name):
        acp_replay.on_frame(recorded)
        if checks:
            checks.on_line("out" if recorded.sender == "client" else "in", msgspec.json.encode(recorded.frame))
    printer.finish()
    return checks.exit_code(0) if checks else 0
