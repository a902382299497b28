"""Shows a recorded conversation as `ostler acp run` would have shown it."""

import sys
from typing import Any

import msgspec

from ostler.app.acp_live_check import LiveProtocolCheck
from ostler.app.acp_recording import RecordedFrame, read_recording
from ostler.app.acp_status import print_status
from ostler.app.acp_text_output import LabelledOutput, PlainOutput
from ostler.core.permission import Decision
from ostler.wire.acp import ToolCallFields
from ostler.wire.acp_decode import decode_lenient
from ostler.wire.acp_requests import CreateTerminalRequest, PromptRequest, PromptResponse, RequestPermissionRequest
from ostler.wire.acp_tool_calls import ToolCallTracker
from ostler.wire.acp_updates import decode_update


class AcpReplay:
    """Hears the frames of a log in their order."""

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
        asker = "agent" if recorded.sender == "client" else "client"
        asked = self._requests.pop((asker, str(frame.get("id"))), None)
        if asked:
            self._on_response(*asked, frame)

    def _on_message(self, method: str, params: dict[str, Any]) -> None:
        if method == "session/prompt":
            self._calls = ToolCallTracker()
            self._output.start_turn()
            if isinstance(self._output, LabelledOutput):
                words = [block.text or f"[{block.type}]" for block in decode_lenient(PromptRequest, params).prompt]
                self._output.write_labelled("prompt", " ".join(words))
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
                answer = decode_lenient(PromptResponse, result)
                self._output.write_usage(answer.usage)
                self._output.write_labelled("stop", answer.stop_reason)
        elif method == "session/request_permission":
            self._on_permission(params, result)
        elif method.startswith("terminal/") and isinstance(result, dict):
            self._on_terminal(method, params, result)

    def _on_permission(self, params: dict[str, Any], result: Any) -> None:
        asked = decode_lenient(RequestPermissionRequest, params)
        outcome = result.get("outcome", {}) if isinstance(result, dict) else {}
        chosen = next((option for option in asked.options if option.option_id == outcome.get("optionId")), None)
        allowed = chosen is not None and chosen.kind.startswith("allow")
        call = self._calls.upsert(asked.tool_call)
        decision = Decision("allow" if allowed else "deny" if chosen else "cancel")
        self._output.on_decision(msgspec.structs.replace(asked, tool_call=call), decision)

    def _on_terminal(self, method: str, params: dict[str, Any], result: dict[str, Any]) -> None:
        terminal = str(result.get("terminalId") or params.get("terminalId"))
        match method:
            case "terminal/create":
                asked = decode_lenient(CreateTerminalRequest, params)
                self._output.on_terminal("created", terminal, " ".join((asked.command, *asked.args)))
            case "terminal/output":
                self._output.on_terminal("output", terminal, str(result.get("output", "")))
            case "terminal/wait_for_exit":
                self._output.on_terminal("exited", terminal, str(result.get("signal") or result.get("exitCode")))
            case "terminal/release":
                self._output.on_terminal("released", terminal)


def replay(name: str, output: str, *, check: bool) -> int:
    """Show a log; with `check`, hold it to the protocol as well."""
    show = LabelledOutput(sys.stdout) if output == "text" else PlainOutput(sys.stdout)
    player = AcpReplay(show)
    checks = LiveProtocolCheck(print_status) if check else None
    for said in read_recording(name):
        player.on_frame(said)
        if checks:
            checks.on_line("out" if said.sender == "client" else "in", msgspec.json.encode(said.frame))
    show.finish()
    return checks.exit_code(0) if checks else 0
