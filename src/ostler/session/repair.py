"""What was left unfinished is finished as events, so that the history is always a valid request."""

from collections.abc import Callable, Container, Sequence

from ostler.session.state import SessionState
from ostler.vocabulary.events import Event, Notice, PermissionDecided, QuestionAnswered, ToolFinished, TurnEnded
from ostler.vocabulary.permission import Decision, Reply
from ostler.vocabulary.seams import Past
from ostler.vocabulary.tools import ToolResult

INTERRUPTED = "Interrupted before it ran; nothing was done."
OUTCOME_UNKNOWN = "Interrupted while it ran: it may have taken effect in part. Look before you run it again."


def repair(
    state: SessionState, emit: Callable[[Event], None], ended: TurnEnded | None = None, but: Container[str] = ()
) -> None:
    """Give every call a result, every ask an answer and the open turn its end, which is `ended` if it is known.

    `but` are calls that go on, and so do their asks.
    """
    for ask_id, asked in tuple(state.asks.items()):
        if asked.permission.call_id not in but:
            emit(PermissionDecided(ask_id, asked.permission, Decision("cancel", by="nobody")))
    for question_id in tuple(state.questions):
        emit(QuestionAnswered(question_id, Reply("cancel")))
    for call in state.unanswered():
        if call.id in but:
            continue
        emit(ToolFinished(_unfinished(call.id, call.id in state.started)))
    if ended:
        emit(ended)
    elif state.turn:
        emit(TurnEnded(state.turn.turn_id, "cancelled"))


def fresh(damage: Sequence[str], past: Past) -> list[str]:
    """What a person was not told when the session was opened before."""
    told = {past[at].event for at in past.of(("notice",))} if damage else set()
    return [sentence for sentence in damage if Notice("warning", sentence) not in told]


def _unfinished(call_id: str, started: bool) -> ToolResult:
    if started:
        return ToolResult(call_id, "unknown", OUTCOME_UNKNOWN)
    return ToolResult(call_id, "cancelled", INTERRUPTED)
