"""Which turn of the server the local session follows, and which messages the server has not acknowledged."""

import asyncio
from collections.abc import Collection

import msgspec

from ostler.core.errors import OstlerError
from ostler.core.events import TurnEnded
from ostler.core.prompt import Prompt
from ostler.http.rate_limit import RateLimit
from ostler.text.sanitise import escape_to_one_line
from ostler.wire.client_frames import UserMessageFrame
from ostler.wire.frames_shared import SessionSnapshot
from ostler.wire.server_frames import MessageAccepted

MAX_QUOTED = 200
MAX_SHOWN = 20  # messages of others in one turn
TURNS_PER_MINUTE = 60  # that the server starts here; more of them wait


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
    def is_probe(self) -> bool:
        """Whether an earlier process has sent the message; without its text it only asks whether the server has it."""
        return self.message is not None and not self.message.content and not self.message.blocks

    @property
    def unsent(self) -> UserMessageFrame | None:
        """The message, until the server has acknowledged it."""
        return None if self.is_accepted else self.message

    def finish(self, ended: TurnEnded) -> None:
        if not self.ended.done():
            self.ended.set_result(ended)

    def fail(self, error: OstlerError) -> None:
        self.finish(TurnEnded("", "failed", error.fault))


class OtherTurns:
    """Limits how many messages of others are shown in one local turn, and how many of their turns begin here."""

    def __init__(self) -> None:
        self.shown = 0
        self._rate = RateLimit(TURNS_PER_MINUTE)

    def describe(self, prompt: Prompt) -> str:
        """Return what to show for a message of another client, or "" if there were too many."""
        self.shown += 1
        if self.shown > MAX_SHOWN:
            return "further messages of others are not shown in this turn" if self.shown == MAX_SHOWN + 1 else ""
        return f"{escape_to_one_line(prompt.who[:100]) or 'another client'} asked: {prompt.text[:MAX_QUOTED]}"

    async def wait(self) -> None:
        """Wait until another turn may begin here without a message of this side."""
        if seconds := self._rate.take():
            await asyncio.sleep(seconds)
            self._rate.take()


class RemoteTurns:
    """The turn that runs on the server, the one that is followed here, and those that were given up here."""

    def __init__(self) -> None:
        self.running: str | None = None  # the server's turn as far as the log was read; empty if its id is not known
        self.followed: FollowedTurn | None = None
        self.given_up: set[str] = set()  # turns that were cancelled here and have not ended on the server
        self.cancelled_messages: set[str] = set()
        self.is_following = asyncio.Event()
        self.is_free = asyncio.Event()

    def follow(self, message: UserMessageFrame | None = None, turn_id: str = "") -> FollowedTurn:
        """Begin a local turn. Without a message it follows the turn that runs on the server."""
        turn = FollowedTurn(asyncio.get_running_loop().create_future(), message, turn_id)
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

    def on_accepted(self, accepted: MessageAccepted) -> FollowedTurn | None:
        """Note that the server has a message. Return the local turn if it is the one of this message."""
        turn = self.followed
        if turn is None or turn.message_id != accepted.client_message_id:
            return None
        turn.is_accepted = True
        if accepted.status == "duplicate":  # what the log says about it comes before
            if accepted.turn_id:
                turn.turn_id = self.running = accepted.turn_id
            elif accepted.position:
                turn.was_queued = True
            else:
                turn.finish(TurnEnded("", "done"))
        return turn

    def on_queue(self, waiting: Collection[str]) -> bool:
        """Note which messages wait. Return whether the local turn ends because its message was withdrawn."""
        turn = self.followed
        if turn is None or turn.turn_id or not turn.message_id:
            return False
        if turn.message_id in waiting:
            turn.is_accepted = turn.was_queued = True
        elif turn.was_queued:
            turn.finish(TurnEnded("", "cancelled"))
            return True
        return False

    def on_snapshot(self, snapshot: SessionSnapshot) -> None:
        """Use a snapshot instead of the log: what runs on the server, and whether the local turn has ended there."""
        self.running = snapshot.turn_id or None
        turn = self.followed
        if turn and (turn.message is None or any(message.id == turn.message_id for message in snapshot.messages)):
            turn.is_accepted, turn.turn_id = True, snapshot.turn_id
            if not snapshot.turn_id:
                turn.finish(TurnEnded("", "done"))

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
