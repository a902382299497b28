"""What was left unfinished is finished as events, so that the history is always a valid request."""

from collections.abc import Callable, Container, Sequence

from ostler.core.events import Event, Notice, PermissionDecided, QuestionAnswered, ToolFinished, TurnEnded
from ostler.core.permission import Decision, QuestionReply
from ostler.core.protocols import Records
from ostler.core.tools import ToolResult
from ostler.session.state import SessionState

INTERRUPTED = "Interrupted before it ran; nothing was done."
OUTCOME_UNKNOWN = "Interrupted while it ran: it may have taken effect in part. Look before you run it again."


def close_unfinished(
    state: SessionState,
    emit: Callable[[Event], None],
    turn_end: TurnEnded | None = None,
    except_calls: Container[str] = (),
) -> None:
    """Give every call a result, every ask an answer and the open turn its end, which is `ended` if it is known.

    `but` are calls that go on, and so do their asks.
    """
    for ask_id, asked in tuple(state.asks.items()):
        if asked.permission.call_id not in except_calls:
            emit(PermissionDecided(ask_id, asked.permission, Decision("cancel", by="nobody")))
    for question_id in tuple(state.questions):
        emit(QuestionAnswered(question_id, QuestionReply("cancel")))
    for call in state.calls_without_result():
        if call.id in except_calls:
            continue
        emit(ToolFinished(_unfinished_result(call.id, call.id in state.started)))
    if turn_end:
        emit(turn_end)
    elif state.turn:
        emit(TurnEnded(state.turn.turn_id, "cancelled"))


def unreported_damage(damage: Sequence[str], records: Records) -> list[str]:
    """What a person was not told when the session was opened before."""
    told = {records[at].event for at in records.indexes_of(("notice",))} if damage else set()
    return [sentence for sentence in damage if Notice("warning", sentence) not in told]


def _unfinished_result(call_id: str, started: bool) -> ToolResult:
    if started:
        return ToolResult(call_id, "unknown", OUTCOME_UNKNOWN)
    return ToolResult(call_id, "cancelled", INTERRUPTED)
