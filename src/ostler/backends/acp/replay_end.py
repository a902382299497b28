"""Waits for the end of a replay: some agents send a part of it after they have answered `session/load`."""

import asyncio

from ostler.wire.acp import ToolCallFields
from ostler.wire.acp_updates import ContentChunk, PlanUpdate, SessionUpdate, UserMessageChunk

QUIET_SECONDS = 0.25  # without an update, after a replay that ended with the agent's own message
INCOMPLETE_QUIET_SECONDS = 1.0  # after one that is empty or ended with the user's message, so that an answer is missing
MAX_SECONDS = 10.0


def is_conversation(update: SessionUpdate) -> bool:
    """Return whether an update is a part of the conversation, which a replay repeats."""
    return isinstance(update, (ContentChunk, ToolCallFields, PlanUpdate))


class ReplayEnd:
    """Decides when a replay is over. The protocol has no mark for it, so a quiet period is required.

    With `expected` the agent must replay the session; otherwise it is waited for only if it does so.
    """

    def __init__(self, *, expected: bool) -> None:
        self._expected = expected
        self._last_update: SessionUpdate | None = None
        self._last_time = 0.0
        self._opened_at = 0.0
        self._received = asyncio.Event()

    def on_update(self, update: SessionUpdate) -> None:
        """Note an update that arrived before the first prompt."""
        if is_conversation(update):
            self._last_update, self._last_time = update, _now()
            self._received.set()

    def on_opened(self) -> None:
        """Note that the agent has answered the request to open the session."""
        self._opened_at = self._last_time = _now()

    async def wait(self) -> None:
        """Wait until the agent has sent nothing for a while; return at once if that is already so."""
        if not self._expected and self._last_update is None:
            return
        while (remaining := min(self._last_time + self._quiet, self._opened_at + MAX_SECONDS) - _now()) > 0:
            self._received.clear()
            try:
                async with asyncio.timeout(remaining):
                    await self._received.wait()
            except TimeoutError:
                return

    @property
    def _quiet(self) -> float:
        incomplete = self._last_update is None or isinstance(self._last_update, UserMessageChunk)
        return INCOMPLETE_QUIET_SECONDS if incomplete else QUIET_SECONDS


def _now() -> float:
    return asyncio.get_running_loop().time()
