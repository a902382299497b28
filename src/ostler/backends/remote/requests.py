"""Changes of the session that are sent to the server, and their answers."""

import asyncio
import os
from collections.abc import Callable

from ostler.core.errors import BackendError
from ostler.core.sessions import SessionChange
from ostler.wire.client_frames import ChangeRequest
from ostler.wire.server_frames import ChangeResult

ANSWER_SECONDS = 15.0


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
