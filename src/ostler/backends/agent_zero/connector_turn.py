"""One turn over the connector: which events belong to it, what was shown, and whether it has ended."""

import time
from typing import Any

from ostler.backends.agent_zero.transport import TurnListener
from ostler.core.errors import BackendError
from ostler.text.sanitise import sanitise
from ostler.wire.agent_zero.connector_events import ANSWERS, ConnectorEvent
from ostler.wire.agent_zero.loose_values import first_text
from ostler.wire.agent_zero.zero_events import PARAGRAPH, ZeroEvent

SETTLE_SECONDS = 1.0  # without an event after the report of the end, which may overtake the last events
MAX_TURN_CHARACTERS = 64 * 1024 * 1024
_COMPARED_CHARACTERS = 500  # the server shortens long messages in its log


class ConnectorTurn:
    """The events after `first_seq`, the last one of earlier turns."""

    def __init__(self, first_seq: int, listener: TurnListener) -> None:
        self.first_seq = first_seq
        self.is_accepted = False  # the server has confirmed the message
        self.may_lack_end = False  # the report of the end may have been lost, or the server does not send one
        self.failure: BaseException | None = None
        self._listener = listener
        self._events: dict[int, ConnectorEvent] = {}
        self._characters = 0
        self._answers: list[str] = []  # by event, as shown so far
        self._response: str | None = None
        self._ends = 0
        self._changed_at = time.monotonic()

    @property
    def has_answer(self) -> bool:
        return bool(self._answers)

    @property
    def is_over(self) -> bool:
        """Whether the end was reported and the events before it have arrived."""
        if not self._ends:
            return False
        shown = self._response is not None and self._response.strip() in (text.strip() for text in self._answers)
        return shown or self._ends > 1 or time.monotonic() - self._changed_at >= SETTLE_SECONDS

    def has_message(self, text: str) -> bool:
        """Return whether the server has logged this message in this turn."""
        begin = text.strip()[:_COMPARED_CHARACTERS]
        return any(
            event.kind == "user_message" and event.text.strip()[:_COMPARED_CHARACTERS] == begin
            for event in self._events.values()
        )

    def show(self, event: ConnectorEvent) -> bool:
        """Show a new or changed event. Return False if it belongs to an earlier turn or is known."""
        known = self._events.get(event.seq)
        if event.seq <= self.first_seq or known == event:
            return False
        self._changed_at = time.monotonic()
        self._characters += len(event.text)
        if self._characters > MAX_TURN_CHARACTERS:
            self.fail(BackendError("the server sent too much in one turn", code="malformed"))
            return False
        self._events[event.seq] = event
        if event.kind in ANSWERS:
            self._show_answer(event.text, known.text if known else "")
        else:
            self._listener.on_log_item(event.log_item())
        return True

    def end(self, members: dict[str, Any]) -> None:
        """Handle the report of the end. One without an answer counts only if this turn has events."""
        response, failed = members.get("response"), members.get("status") == "error"
        if not isinstance(response, str) and not failed and not self._events:
            return
        self._ends += 1
        self._changed_at = time.monotonic()
        self._response = response if isinstance(response, str) else self._response
        if failed:
            text = sanitise(first_text(members, "error") or "unknown error")[:2000]
            self.fail(BackendError(f"Agent Zero failed: {text}", code="agent_error"))

    def finish(self) -> None:
        """Show the answer of the report of the end if no event had it."""
        response = (self._response or "").strip()
        if response and response not in (text.strip() for text in self._answers):
            self._show_answer(response, "")

    def fail(self, error: BaseException) -> None:
        self.failure = self.failure or error

    def _show_answer(self, text: str, before: str) -> None:
        continues = bool(before) and text.startswith(before)
        piece = text[len(before) :] if continues else text
        if continues:
            self._answers[-1] = text
        elif text:
            self._answers.append(text)
        if piece:
            self._listener.on_event(ZeroEvent("piece", piece, "" if continues else PARAGRAPH))
