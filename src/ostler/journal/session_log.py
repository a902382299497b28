"""What happens in a session, told to the log: who did what and how it went, never what was in it."""

import logging
from collections.abc import Callable

from ostler.journal.log_file import SESSION
from ostler.text.cut import cut_middle
from ostler.vocabulary.events import (
    Envelope,
    Event,
    Notice,
    OptionChanged,
    PermissionDecided,
    SessionOpened,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from ostler.vocabulary.seams import Past

_log = logging.getLogger("ostler.journal.session")
LONGEST = 300
LEVELS = {"info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


class SessionLog:
    """Logs a session's turns, calls, decisions and notices; `leave` is called when the session closes."""

    def __init__(self, session_id: str, leave: Callable[[], None] = lambda: None) -> None:
        self._id = session_id
        self._leave = leave
        self._tools: dict[str, str] = {}

    def catch_up(self, past: Past) -> None:
        """The past was logged when it happened."""

    def take(self, envelope: Envelope) -> None:
        event = envelope.event
        if isinstance(event, TurnStarted):
            SESSION.set(self._id)  # the turn's own task begins after this and takes it along
        level = LEVELS[event.level] if isinstance(event, Notice) else logging.INFO
        if text := self._told(event):
            _log.log(level, "%s", cut_middle(text, LONGEST).text, extra={"session": self._id})

    def close(self) -> None:
        _log.info("closed", extra={"session": self._id})
        self._leave()

    def _told(self, event: Event) -> str:
        match event:
            case ToolStarted(call_id, tool):
                self._tools[call_id] = tool
                return f"{tool} started ({call_id})"
            case ToolFinished(result):
                tool = self._tools.pop(result.call_id, "call")
                return f"{tool} {result.status} ({result.call_id}): {result.for_human.summary}"
            case PermissionDecided(_, permission, decision):
                return f"{decision.answer} by {decision.by}: {permission.title}"
            case _:
                return _told_of_session(event)


def _told_of_session(event: Event) -> str:
    match event:
        case SessionOpened(cwd=cwd, backend=backend, version=version):
            return f"opened in {cwd} with {backend}, ostler {version}"
        case TurnStarted(turn_id):
            return f"{turn_id} started"
        case OptionChanged(option_id, value):
            return f"{option_id} set to {value}"
        case Notice(_, text):
            return text
        case TurnEnded(turn_id, reason, fault):
            return f"{turn_id} ended: {reason}" + (f" ({fault.code}: {fault.message})" if fault else "")
        case _:
            return ""
