"""Writes turns, calls, decisions and notices of a session to the log, without their content."""

import logging
from collections.abc import Callable

from ostler.core.events import (
    Envelope,
    Event,
    Notice,
    OptionChanged,
    PermissionDecided,
    ServerStateChanged,
    SessionOpened,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from ostler.core.session_view import Records
from ostler.journal.log_file import CURRENT_SESSION
from ostler.text.truncate import truncate_middle

_log = logging.getLogger("ostler.journal.session")
MAX_TEXT_LENGTH = 300
LEVELS = {"info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


class SessionLog:
    """Logs a session's turns, calls, decisions and notices; calls `on_close` when the session closes."""

    def __init__(self, session_id: str, on_close: Callable[[], None] = lambda: None) -> None:
        self._id = session_id
        self._on_close = on_close
        self._tool_names: dict[str, str] = {}

    def catch_up(self, records: Records) -> None:
        """Do nothing: earlier records were logged when they were written."""

    def on_record(self, envelope: Envelope) -> None:
        event = envelope.event
        if isinstance(event, TurnStarted):
            CURRENT_SESSION.set(self._id)  # the turn's task is created after this and inherits the value
        level = LEVELS[event.level] if isinstance(event, Notice) else logging.INFO
        if isinstance(event, ServerStateChanged) and event.failure:
            level = logging.WARNING
        if text := self._describe(event):
            _log.log(level, "%s", truncate_middle(text, MAX_TEXT_LENGTH).text, extra={"session": self._id})

    def close(self) -> None:
        _log.info("closed", extra={"session": self._id})
        self._on_close()

    def _describe(self, event: Event) -> str:
        match event:
            case ToolStarted(call_id, tool):
                self._tool_names[call_id] = tool
                return f"{tool} started ({call_id})"
            case ToolFinished(result):
                tool = self._tool_names.pop(result.call_id, "call")
                return f"{tool} {result.status} ({result.call_id}): {result.for_human.summary}"
            case PermissionDecided(_, permission, decision):
                who = f" {decision.who}" if decision.who else ""
                return f"{decision.answer} by {decision.by}{who}: {permission.title}"
            case _:
                return _describe_session_event(event)


def _describe_session_event(event: Event) -> str:
    match event:
        case SessionOpened(cwd=cwd, backend=backend, version=version):
            return f"opened in {cwd} with {backend}, ostler {version}"
        case TurnStarted(turn_id):
            return f"{turn_id} started"
        case OptionChanged(option_id, value):
            return f"{option_id} set to {value}"
        case Notice(_, text):
            return text
        case ServerStateChanged(name, state, detail, tools):
            return f"server {name} {state}, {tools} tools" + (f": {detail}" if detail else "")
        case TurnEnded(turn_id, reason, fault):
            return f"{turn_id} ended: {reason}" + (f" ({fault.code}: {fault.message})" if fault else "")
        case _:
            return ""
