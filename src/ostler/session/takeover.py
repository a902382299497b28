"""Prepares the turn of another process, which the journal holds, to be continued here."""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from ostler.core.events import Event, Notice, PartialReply, ToolFinished, TurnStarted
from ostler.core.protocols import ToolRunner
from ostler.core.tools import ToolCall
from ostler.session.repair import close_unfinished, unfinished_result, withdraw_requests
from ostler.session.state import SessionState


@runtime_checkable
class RepeatableTools(Protocol):
    """A `ToolRunner` whose calls may be sent twice, because the machine that runs them runs each id once."""

    def repeats(self, call: ToolCall) -> bool:
        """Return whether a call that another process has started can be run again without a second effect."""


def prepare_takeover(state: SessionState, emit: Callable[[Event], None], tools: ToolRunner) -> TurnStarted | None:
    """Return the interrupted turn if the backend can continue it. Else repair the session and return None.

    If `tools` can repeat a call that was started, the backend runs it again.
    """
    turn = state.turn
    if turn is None or not state.info.can_take_over:
        close_unfinished(state, emit)
        if turn:
            text = f"{state.info.backend} cannot continue the turn of another process; the turn was ended"
            emit(Notice("warning", text))
        return None
    withdraw_requests(state, emit)
    for call in state.calls_without_result():
        started = call.id in state.started
        if call.origin == "person" or (started and not _repeats(tools, call)):  # the backend runs the other calls
            emit(ToolFinished(unfinished_result(call.id, started)))
    for message_id in tuple(state.partial_replies.saved):  # the backend requests this reply again
        emit(PartialReply(message_id, restarts=True))
    return turn


def _repeats(tools: ToolRunner, call: ToolCall) -> bool:
    return isinstance(tools, RepeatableTools) and tools.repeats(call)
