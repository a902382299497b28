"""Prepares the turn of another process, which the journal holds, to be continued here."""

from collections.abc import Callable

from ostler.core.events import Event, Notice, PartialReply, ToolFinished, TurnStarted
from ostler.session.repair import close_unfinished, unfinished_result, withdraw_requests
from ostler.session.state import SessionState


def prepare_takeover(state: SessionState, emit: Callable[[Event], None]) -> TurnStarted | None:
    """Return the interrupted turn if the backend can continue it. Else repair the session and return None."""
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
        if started or call.origin == "person":  # the backend runs its other calls, which have not started
            emit(ToolFinished(unfinished_result(call.id, started)))
    for message_id in tuple(state.partial_replies.saved):  # the backend requests this reply again
        emit(PartialReply(message_id, restarts=True))
    return turn
