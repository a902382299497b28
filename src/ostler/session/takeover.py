"""Prepares the turn of another process, which the journal holds, to be continued here."""

from collections.abc import Callable

from ostler.core.events import Event, Notice, PartialReply, ToolFinished, TurnStarted
from ostler.core.tools import ToolCall
from ostler.session.repair import close_unfinished, unfinished_result, withdraw_requests
from ostler.session.state import SessionState


def prepare_takeover(
    state: SessionState, emit: Callable[[Event], None], repeats: Callable[[ToolCall], bool]
) -> TurnStarted | None:
    """Return the interrupted turn if the backend can continue it. Else repair the session and return None.

    `repeats` returns whether a call that was started can be run again; the backend then does so.
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
        if call.origin == "person" or (started and not repeats(call)):  # the backend runs the other calls
            emit(ToolFinished(unfinished_result(call.id, started)))
    for message_id in tuple(state.partial_replies.saved):  # the backend requests this reply again
        emit(PartialReply(message_id, restarts=True))
    return turn
