"""Finds out which open requests have a token that was revoked or has expired since they began."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from ostler.core.accounts import Accounts
from ostler.core.errors import OstlerError
from ostler.wire.frames_shared import CloseCode

_log = logging.getLogger("ostler.server")


class TokenWatch:
    """Checks the tokens of all open requests together, every few seconds while there are any."""

    def __init__(self, accounts: Accounts, seconds: float) -> None:
        self._accounts = accounts
        self._seconds = seconds
        self._open: dict[str, set[asyncio.Future[int]]] = {}
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def watch(self, token_id: str) -> Iterator["asyncio.Future[int]"]:
        """Give a future with the close code, which is resolved when the token is no longer valid."""
        ended = asyncio.get_running_loop().create_future()
        self._open.setdefault(token_id, set()).add(ended)
        if self._task is None:
            self._task = asyncio.create_task(self._check_all(), name="check the tokens of open requests")
        try:
            yield ended
        finally:
            ended.cancel()
            requests = self._open[token_id]
            requests.discard(ended)
            if not requests:
                del self._open[token_id]
            if not self._open and self._task is not None:
                self._task.cancel()
                self._task = None

    async def _check_all(self) -> None:
        while True:
            await asyncio.sleep(self._seconds)
            token_ids, code = frozenset(self._open), int(CloseCode.UNAUTHENTICATED)
            try:
                valid = await asyncio.to_thread(self._accounts.valid, token_ids)
            except OstlerError as error:
                _log.error("tokens cannot be checked, so all connections are closed: %s", error)
                valid, code = frozenset(), int(CloseCode.RESTART)  # clients may come back, and are checked then
            for token_id in token_ids - valid:
                for ended in self._open.get(token_id, ()):
                    if not ended.done():
                        ended.set_result(code)
