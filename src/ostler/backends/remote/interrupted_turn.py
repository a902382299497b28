"""Follows the turn that an earlier process of this side has not ended."""

from ostler.backends.remote.host_calls import HostCalls
from ostler.backends.remote.log_position import LogPosition
from ostler.backends.remote.turns import FollowedTurn, RemoteTurns
from ostler.core.events import TurnEnded
from ostler.wire.client_frames import UserMessageFrame


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
