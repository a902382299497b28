"""What waits for the server: changes for their answers, and the prompts of this side in its queue."""

import asyncio
import os
from collections.abc import Callable, Sequence

import msgspec

from ostler.core.errors import BackendError, OstlerError
from ostler.core.events import Queued
from ostler.core.prompt import Prompt, TextContent
from ostler.core.sessions import SessionChange
from ostler.wire.client_frames import ChangeRequest, QueueWithdraw, UserMessageFrame
from ostler.wire.frames_shared import QueueItem
from ostler.wire.server_frames import ChangeResult

ANSWER_SECONDS = 15.0


class WaitingMessage(msgspec.Struct, eq=False):
    """A message for the queue; `accepted` is set when the server has it."""

    message: UserMessageFrame
    accepted: "asyncio.Future[None]"


class WaitingMessages:
    """Sends prompts to the queue and withdraws them. A message is repeated until the server has acknowledged it."""

    def __init__(
        self,
        session_id: str,
        send: Callable[[UserMessageFrame | QueueWithdraw], object],
        make: Callable[[Prompt, str], UserMessageFrame],
    ) -> None:
        """`make` returns the message of a prompt with an id."""
        self._session_id = session_id
        self._send = send
        self._make = make
        self._messages: dict[str, WaitingMessage] = {}
        self._asks_queue = False

    async def set(self, prompts: Sequence[Prompt], withdrawn: Sequence[str] = ()) -> bool:
        """Make these the prompts of this side that wait, and withdraw those of other clients with the given ids.

        Return when the server has them. Raises `BackendError`.
        """
        for message_id in withdrawn:
            if not self._send(QueueWithdraw(message_id, self._session_id)):
                raise BackendError("the server is not connected now, so the prompt still waits", code="disconnected")
        wanted = {prompt.id: prompt for prompt in prompts}
        for message_id in tuple(self._messages.keys() - wanted.keys()):
            del self._messages[message_id]
            self._send(QueueWithdraw(message_id, self._session_id))
        added = []
        for message_id, prompt in wanted.items():
            if message_id not in self._messages:
                waiting = WaitingMessage(self._make(prompt, message_id), asyncio.get_running_loop().create_future())
                self._messages[message_id] = waiting
                self._send(waiting.message)
                added.append(waiting.accepted)
        if added:
            await asyncio.wait(added)  # unlike `gather`, this does not cancel them with the call
            errors = [error for accepted in added if (error := accepted.exception())]
            if errors:
                raise errors[0]
        return True

    def queue_at_start(self, items: Sequence[QueueItem]) -> Queued | None:
        """Return the queue of the server if the log has not told it: after a connection that continues no log."""
        if not self._asks_queue:
            return None
        self._asks_queue = False
        prompts = [Prompt(item.client_message_id, (TextContent(item.content),), who=item.who) for item in items]
        return Queued(tuple(item.content for item in items), tuple(prompts))

    def on_connected(self, *, resumed: bool) -> None:
        """Send what the server has not acknowledged, after a new connection."""
        self._asks_queue = not resumed
        for waiting in self._messages.values():
            if not waiting.accepted.done():
                self._send(waiting.message)

    def on_accepted(self, message_id: str) -> None:
        waiting = self._messages.get(message_id)
        if waiting and not waiting.accepted.done():
            waiting.accepted.set_result(None)

    def on_error(self, message_id: str, text: str, code: str) -> bool:
        """Note that the server refused a message. Return False if it is none of these."""
        waiting = self._messages.pop(message_id, None)
        if waiting and not waiting.accepted.done():
            waiting.accepted.set_exception(BackendError(text, code=code))
        return waiting is not None

    def on_started(self, message_id: str) -> bool:
        """Note that a turn began. Return whether it is one of these messages."""
        self.on_accepted(message_id)
        return self._messages.pop(message_id, None) is not None

    def fail_all(self, error: OstlerError) -> None:
        for message_id in tuple(self._messages):
            self.on_error(message_id, str(error), error.fault.code)


class ChangeRequests:
    """The changes that wait for an answer, by request id."""

    def __init__(self, session_id: str, send: Callable[[ChangeRequest], bool]) -> None:
        self._session_id = session_id
        self._send = send
        self._waiting: dict[str, asyncio.Future[bool]] = {}

    async def send(self, change: SessionChange) -> bool:
        """Send a change and return whether the server applied it. Raises `BackendError`."""
        request_id = os.urandom(8).hex()
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = answer
        try:
            if not self._send(ChangeRequest(request_id, change, self._session_id)):
                raise BackendError("the server is not connected now, so it was not told", code="disconnected")
            async with asyncio.timeout(ANSWER_SECONDS):
                return await answer
        except TimeoutError:
            raise BackendError("the server did not answer", code="timeout") from None
        finally:
            del self._waiting[request_id]

    def on_result(self, result: ChangeResult) -> None:
        if (answer := self._waiting.get(result.request_id)) and not answer.done():
            answer.set_result(result.applied)

    def on_error(self, request_id: str, text: str) -> None:
        if (answer := self._waiting.get(request_id)) and not answer.done():
            answer.set_exception(BackendError(text, code="refused"))

    def fail_all(self) -> None:
        """Fail what waits: after a cut nobody knows whether the server applied it."""
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(BackendError("the connection was cut before the server answered", code="cut"))
