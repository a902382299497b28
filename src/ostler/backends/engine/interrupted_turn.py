"""Reads from the records how far an interrupted turn came, so that the loop can continue it."""

from collections.abc import Sequence

import msgspec

from ostler.core.errors import UsageError
from ostler.core.events import MessageDone, TurnStarted
from ostler.core.message import CallPart, Message
from ostler.core.prompt import Prompt
from ostler.core.session_view import Records

INTERRUPTED_REPLY = "Not from the user: your last reply was interrupted. Continue where it stopped."
# After a reply without calls, these mean that the turn went on to its next step.
_NEXT_STEP_TYPES = frozenset(("reminded", "delivered", "compacted"))


class InterruptedTurn(msgspec.Struct, frozen=True):
    """A turn that has not ended: its prompt, the index of its first record, and the pieces of its last reply.

    `continues_after_reply`: the turn went on after that reply, so the next step is a request.
    """

    prompt: Prompt
    start_index: int
    reply: tuple[Message, ...] = ()
    continues_after_reply: bool = False


def find_interrupted_turn(records: Records) -> InterruptedTurn:
    """Return the turn that the records end with. Raises `UsageError` if it has ended or there is none."""
    pieces: list[Message] = []
    later_types: set[str] = set()
    is_reply_complete = False
    for index in reversed(range(len(records))):
        kind = records.type_at(index)
        if kind == "turn_ended":
            break
        event = records[index].event if kind in ("turn_started", "message_done") else None
        if isinstance(event, TurnStarted):
            return InterruptedTurn(event.prompt, index + 1, tuple(pieces), not later_types.isdisjoint(_NEXT_STEP_TYPES))
        if isinstance(event, MessageDone) and not is_reply_complete:
            pieces.insert(0, event.message)
            is_reply_complete = not event.message.continues
        if not pieces:
            later_types.add(kind)
    raise UsageError("there is no turn to continue")


def calls_to_run(reply: Sequence[Message], records: Records) -> Message:
    """Return a message with the calls that have no result yet; those of a truncated piece may be incomplete."""
    parts = (part for piece in reply if not piece.truncated for part in piece.parts)
    calls = (part for part in parts if isinstance(part, CallPart) and records.result(part.call.id) is None)
    return msgspec.structs.replace(reply[0], parts=tuple(calls))
