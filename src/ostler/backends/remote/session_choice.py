"""Chooses the server's session of a local session, gets its texts, and follows the turn that the journal has open."""

import os

from ostler.backends.remote.host_calls import HostCalls
from ostler.backends.remote.log_position import LogPosition
from ostler.backends.remote.plan import RemotePlan
from ostler.backends.remote.server import RemoteServer
from ostler.backends.remote.turns import FollowedTurn, RemoteTurns
from ostler.core.events import TurnEnded
from ostler.core.session_view import Records
from ostler.wire.client_frames import UserMessageFrame
from ostler.wire.frames_shared import SessionSnapshot


async def choose_session(
    server: RemoteServer, plan: RemotePlan, position: LogPosition, root: str, model: str
) -> tuple[str, str, bool]:
    """Return the session of the journal, a copy of it, the named one, or a new one. Raises `BackendError`.

    With its id come its model and whether its log is continued.
    """
    if position.is_copied:
        copy = await server.fork(position.session_id, position.seq)
        position.begin(copy.session_id, copy.epoch, position.seq)
    if not position.session_id and plan.session_id:
        position.session_id = plan.session_id  # with an empty epoch: the server sends the conversation so far
    if position.session_id:
        return position.session_id, model, True
    created = await server.create(root, model, plan.version)
    return created.session_id, created.model or model, False


async def restore_texts(server: RemoteServer, plan: RemotePlan, position: LogPosition) -> None:
    """Get the texts of the conversation, if there is one to resume. Raises `BackendError`."""
    if plan.restore and position.session_id and position.seq:
        plan.restore(*conversation_texts(await server.messages(position.session_id)))


def new_message_id(records: Records) -> str:
    """Return an id that no other message has, with the number of the record of the last prompt."""
    last = max(records.indexes_of(("turn_started",)), default=-1)
    return f"{os.urandom(12).hex()}-{records[last].seq if last >= 0 else 0}"


def conversation_texts(snapshot: SessionSnapshot) -> tuple[dict[str, str], dict[int, str]]:
    """Return the texts of messages by id, and those of prompts by the record in their id."""
    by_id = {message.id: message.content for message in snapshot.messages if message.id}
    prompts = (message for message in snapshot.messages if message.role == "user")
    return by_id, {seq: message.content for message in prompts if (seq := _record_number(message.id))}


def _record_number(message_id: str) -> int:
    number = message_id.partition("-")[2]
    return int(number) if number.isascii() and number.isdigit() and len(number) < 16 else 0


def follow_interrupted(position: LogPosition, turns: RemoteTurns, calls: HostCalls) -> FollowedTurn | None:
    """Follow the turn that the journal has open, if any, from before the first connection on.

    If only its message is known, the message is repeated without its text, and the server says what became of it.
    """
    if position.interrupted is None:
        return None
    calls.restore_turn()
    asks = position.message and not position.turn
    message = UserMessageFrame("", position.session_id, position.message) if asks else None
    turns.running = position.turn or None
    turn = turns.follow(message, position.turn)
    if message is None and not position.turn:
        is_theirs = position.interrupted.prompt.origin == "far_side"
        turn.finish(TurnEnded("", "done" if is_theirs else "cancelled"))
    return turn
