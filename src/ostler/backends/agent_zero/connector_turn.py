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
_REPORTED = -1  # number of an answer that is only in the report of the end
_COMPARED_CHARACTERS = 500  # the server shortens long messages in its log


class ConnectorTurn:
    """The events after `first_seq`, the last one of earlier turns."""

    def __init__(self, first_seq: int, listener: TurnListener) -> None:
        self.first_seq = first_seq
        self.may_lack_end = False  # the report of the end may have been lost, or the server does not send one
        self.failure: BaseException | None = None
        self._listener = listener
        self._events: dict[int, ConnectorEvent] = {}
        self._characters = 0
        self._answers: dict[int, str] = {}  # by number of the event, as shown so far
        self._response: str | None = None
        self._ends = 0
        self._changed_at = time.monotonic()

    @property
    def is_empty(self) -> bool:
        """Whether nothing but messages of the user was received."""
        return not self._answers and all(event.kind == "user_message" for event in self._events.values())

    @property
    def has_answer(self) -> bool:
        return bool(self._answers)

    @property
    def is_over(self) -> bool:
        """Whether the end was reported and the events before it have arrived."""
        if not self._ends:
            return False
        shown = self._response is not None and self._response.strip() in self._shown_answers()
        return shown or self._ends > 1 or time.monotonic() - self._changed_at >= SETTLE_SECONDS

    def has_message(self, text: str) -> bool:
        """Return whether the server has logged this message in this turn."""
        begin = text.strip()[:_COMPARED_CHARACTERS]
        return any(
            event.kind == "user_message" and event.text.strip()[:_COMPARED_CHARACTERS] == begin
            for event in self._events.values()
        )

    def add(self, event: ConnectorEvent) -> bool:
        """Store a new or changed event. Return False if it belongs to an earlier turn or is known."""
        known = self._events.get(event.seq)
        if event.seq <= self.first_seq or known == event:
            return False
        self._changed_at = time.monotonic()
        self._characters += len(event.text)
        if self._characters > MAX_TURN_CHARACTERS:
            self.fail(BackendError("the server sent too much in one turn", code="malformed"))
            return False
        self._events[event.seq] = event
        return True

    def show(self, event: ConnectorEvent) -> None:
        if event.kind in ANSWERS:
            self._show_answer(event.seq, event.text)
        else:
            self._listener.on_log_item(event.log_item())

    def end(self, members: dict[str, Any]) -> None:
        """Handle the report of the end. One without an answer is ignored unless this turn has events."""
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
        if response and response not in self._shown_answers():
            self._show_answer(_REPORTED, response)

    def fail(self, error: BaseException) -> None:
        self.failure = self.failure or error

    def forget_events(self) -> None:
        """Show all further events, because the server numbers them from the beginning."""
        self.first_seq = 0
        self._events.clear()

    def _shown_answers(self) -> list[str]:
        return [text.strip() for text in self._answers.values()]

    def _show_answer(self, number: int, text: str) -> None:
        """Show what is new in an answer. One that was changed, or is not the last one, is shown again as a whole."""
        before = self._answers.get(number, "")
        continues = bool(before) and text.startswith(before) and number == next(reversed(self._answers))
        if text == before or not text:
            return
        if before and not continues:
            self._listener.on_event(ZeroEvent("retraction", self._answers.pop(number)))
        self._answers[number] = text
        piece = text[len(before) :] if continues else text
        self._listener.on_event(ZeroEvent("piece", piece, "" if continues else PARAGRAPH))
