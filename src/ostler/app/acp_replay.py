"""Shows a recorded conversation as `ostler acp run` would have shown it."""

import sys
from typing import Any

import msgspec

from ostler.app.acp_checks import Checks
from ostler.app.acp_log import Said, read_log
from ostler.app.acp_saying import say
from ostler.app.acp_text import MarkedText, SimpleText
from ostler.vocabulary.permission import Decision
from ostler.wire.acp import ToolCallFields
from ostler.wire.acp_calls import CreateTerminal, PermissionRequest, PromptAnswer, PromptRequest
from ostler.wire.acp_read import read
from ostler.wire.acp_tool_calls import ToolCalls
from ostler.wire.acp_updates import read_update


class Replay:
    """Hears the frames of a log in their order."""

    def __init__(self, show: SimpleText) -> None:
        self._show = show
        self._calls = ToolCalls()
        self._asked: dict[tuple[str, Any], tuple[str, dict[str, Any]]] = {}

    def hear(self, said: Said) -> None:
        frame, method = said.frame, said.frame.get("method")
        params = frame.get("params")
        params = params if isinstance(params, dict) else {}
        if isinstance(method, str):
            if "id" in frame:
                self._asked[said.speaker, str(frame["id"])] = (method, params)
            self._said(method, params)
            return
        asker = "agent" if said.speaker == "client" else "client"
        asked = self._asked.pop((asker, str(frame.get("id"))), None)
        if asked:
            self._answered(*asked, frame)

    def _said(self, method: str, params: dict[str, Any]) -> None:
        if method == "session/prompt":
            self._calls = ToolCalls()
            self._show.begin()
            if isinstance(self._show, MarkedText):
                words = [block.text or f"[{block.type}]" for block in read(PromptRequest, params).prompt]
                self._show.mark("prompt", " ".join(words))
        elif method == "session/update":
            update = read_update(params.get("update"))
            call = self._calls.upsert(update) if isinstance(update, ToolCallFields) else None
            self._show.updated(update, call)

    def _answered(self, method: str, params: dict[str, Any], frame: dict[str, Any]) -> None:
        result, error = frame.get("result"), frame.get("error")
        if error is not None:
            if isinstance(self._show, MarkedText):
                self._show.mark("error", f"{method}: {msgspec.json.encode(error).decode()}")
        elif method == "session/prompt":
            self._show.finish()
            if isinstance(self._show, MarkedText):
                answer = read(PromptAnswer, result)
                self._show.used(answer.usage)
                self._show.mark("stop", answer.stop_reason)
        elif method == "session/request_permission":
            self._decided(params, result)
        elif method.startswith("terminal/") and isinstance(result, dict):
            self._terminal(method, params, result)

    def _decided(self, params: dict[str, Any], result: Any) -> None:
        asked = read(PermissionRequest, params)
        outcome = result.get("outcome", {}) if isinstance(result, dict) else {}
        chosen = next((option for option in asked.options if option.option_id == outcome.get("optionId")), None)
        allowed = chosen is not None and chosen.kind.startswith("allow")
        call = self._calls.upsert(asked.tool_call)
        decision = Decision("allow" if allowed else "deny" if chosen else "cancel")
        self._show.decided(msgspec.structs.replace(asked, tool_call=call), decision)

    def _terminal(self, method: str, params: dict[str, Any], result: dict[str, Any]) -> None:
        terminal = str(result.get("terminalId") or params.get("terminalId"))
        match method:
            case "terminal/create":
                asked = read(CreateTerminal, params)
                self._show.terminal("created", terminal, " ".join((asked.command, *asked.args)))
            case "terminal/output":
                self._show.terminal("output", terminal, str(result.get("output", "")))
            case "terminal/wait_for_exit":
                self._show.terminal("exited", terminal, str(result.get("signal") or result.get("exitCode")))
            case "terminal/release":
                self._show.terminal("released", terminal)


def replay(name: str, output: str, *, check: bool) -> int:
    """Show a log; with `check`, hold it to the protocol as well."""
    show = MarkedText(sys.stdout) if output == "text" else SimpleText(sys.stdout)
    player = Replay(show)
    checks = Checks(say) if check else None
    for said in read_log(name):
        player.hear(said)
        if checks:
            checks.hear("out" if said.speaker == "client" else "in", msgspec.json.encode(said.frame))
    show.finish()
    return checks.code(0) if checks else 0
