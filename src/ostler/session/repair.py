"""Closes what a crash left open (calls, approval requests, replies, the turn) by appending the missing events."""

from collections.abc import Callable, Container, Sequence

from ostler.core.events import Event, MessageDone, Notice, PermissionDecided, QuestionAnswered, ToolFinished, TurnEnded
from ostler.core.permission import Decision, QuestionReply
from ostler.core.session_view import Records
from ostler.core.tools import ToolResult
from ostler.session.state import SessionState

INTERRUPTED = "Interrupted before it ran; nothing changed."
OUTCOME_UNKNOWN = "Interrupted while running; it may have partly completed. Check the state before you retry."


def close_unfinished(
    state: SessionState,
    emit: Callable[[Event], None],
    turn_end: TurnEnded | None = None,
    except_calls: Container[str] = (),
) -> None:
    """Emit a result for every open call, an answer for every open request, partial replies and the end of the turn.

    The turn ends with `turn_end` if given, else as cancelled. The calls in `except_calls` and their approval requests
    stay open.
    """
    withdraw_requests(state, emit, except_calls)
    for call in state.calls_without_result():
        if call.id in except_calls:
            continue
        emit(ToolFinished(unfinished_result(call.id, call.id in state.started)))
    for message in state.partial_replies.messages():  # below the results of the calls before it
        emit(MessageDone(message))
    if turn_end:
        emit(turn_end)
    elif state.turn:
        emit(TurnEnded(state.turn.turn_id, "cancelled"))


def withdraw_requests(state: SessionState, emit: Callable[[Event], None], except_calls: Container[str] = ()) -> None:
    """Emit an answer for every open question and approval request, except for those of `except_calls`."""
    for ask_id, request in tuple(state.asks.items()):
        if request.permission.call_id not in except_calls:
            emit(PermissionDecided(ask_id, request.permission, Decision("cancel", by="nobody")))
    for question_id in tuple(state.questions):
        emit(QuestionAnswered(question_id, QuestionReply("cancel")))


def unreported_damage(damage: Sequence[str], records: Records) -> list[str]:
    """Return the damage messages that no earlier notice in the journal contains."""
    notices = {records[index].event for index in records.indexes_of(("notice",))} if damage else set()
    return [message for message in damage if Notice("warning", message) not in notices]


def unfinished_result(call_id: str, started: bool) -> ToolResult:
    """Return the result of a call that was interrupted before or after it started."""
    if started:
        return ToolResult(call_id, "unknown", OUTCOME_UNKNOWN)
    return ToolResult(call_id, "cancelled", INTERRUPTED)
