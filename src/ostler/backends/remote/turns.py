"""Which turn of the server the local session follows, and which messages the server has not acknowledged."""

import asyncio

import msgspec

from ostler.core.errors import OstlerError
from ostler.core.events import TurnEnded
from ostler.wire.client_frames import UserMessageFrame


class FollowedTurn(msgspec.Struct, eq=False):
    """The local turn that runs now. Without a `message` the server started it.

    `turn_id` is the server's id, empty until it is known; then the next end of a turn belongs to it.
    """

    ended: "asyncio.Future[TurnEnded]"
    message: UserMessageFrame | None = None
    turn_id: str = ""
    is_accepted: bool = False
    was_queued: bool = False

    @property
    def message_id(self) -> str:
        return self.message.client_message_id if self.message else ""

    @property
    def unsent(self) -> UserMessageFrame | None:
        """The message, until the server has acknowledged it."""
        return None if self.is_accepted else self.message

    def finish(self, ended: TurnEnded) -> None:
        if not self.ended.done():
            self.ended.set_result(ended)

    def fail(self, error: OstlerError) -> None:
        self.finish(TurnEnded("", "failed", error.fault))


class RemoteTurns:
    """The turn that runs on the server, the one that is followed here, and those that were given up here."""

    def __init__(self) -> None:
        self.running: str | None = None  # the server's turn as far as the log was read; empty if its id is not known
        self.followed: FollowedTurn | None = None
        self.given_up: set[str] = set()  # turns that were cancelled here and have not ended on the server
        self.cancelled_messages: set[str] = set()
        self.is_following = asyncio.Event()
        self.is_free = asyncio.Event()

    def follow(self, message: UserMessageFrame | None = None) -> FollowedTurn:
        """Begin a local turn. Without a message it follows the turn that runs on the server."""
        turn = FollowedTurn(asyncio.get_running_loop().create_future(), message)
        if message is None:
            turn.turn_id = self.running or ""
        self.followed = turn
        self.is_following.set()
        self.is_free.clear()
        return turn

    def unfollow(self) -> None:
        self.followed = None
        self.is_following.clear()
        self.is_free.set()

    @property
    def is_given_up(self) -> bool:
        """Whether the user has cancelled what runs on the server."""
        return self.running in self.given_up

    def give_up(self, turn: FollowedTurn) -> None:
        """Note that the user cancelled a turn that may go on on the server."""
        if turn.turn_id:
            self.given_up.add(turn.turn_id)
        elif turn.message_id:
            self.cancelled_messages.add(turn.message_id)

    def on_started(self, turn_id: str, message_id: str) -> bool:
        """Note that a turn runs on the server. Return whether it is the one of the followed message."""
        self.running = turn_id
        if message_id in self.cancelled_messages:
            self.cancelled_messages.discard(message_id)
            self.given_up.add(turn_id)
        turn = self.followed
        if turn is None or not message_id or turn.message_id != message_id:
            return False
        turn.turn_id, turn.is_accepted = turn_id, True
        return True

    async def on_ended(self, ended: TurnEnded) -> None:
        """Note that a turn ended on the server, and wait until the local turn that followed it has ended too."""
        self.running = None
        self.given_up.discard(ended.turn_id)
        turn = self.followed
        if turn is None:
            return
        if turn.turn_id == ended.turn_id or (turn.message is None and not turn.turn_id):
            turn.finish(TurnEnded("", ended.reason, ended.fault, ended.limit))
        if turn.ended.done():
            await self.is_free.wait()
