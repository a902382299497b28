"""Polls the log of a conversation while a message waits for its answer, and reports new and changed items."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from ostler.backends.agent_zero.server import ZeroServer
from ostler.core.errors import BackendError
from ostler.wire.agent_zero.loose_values import parse_json
from ostler.wire.agent_zero.server_documents import ZeroLog, ZeroLogItem, read_log

LOG_ROUTE = "api_log_get"
LOG_LENGTH = 100
MAX_FAILURES = 3
CATCH_UP_SECONDS = 1.0


class LogPoller:
    """Polls from `begin` to `finish`. Without a conversation, or on a server without a log, it does nothing."""

    def __init__(self, server: ZeroServer, on_item: Callable[[ZeroLogItem], None], seconds: float) -> None:
        self._server = server
        self._on_item = on_item
        self._seconds = seconds
        self._guid = ""
        self._items: dict[int, ZeroLogItem] = {}
        self._has_baseline = False
        self._is_missing = not server.has_routes
        self._polling: asyncio.Task[None] | None = None

    async def begin(self, context_id: str) -> None:
        """Start to poll. Items that were there before are not reported."""
        await self.stop()
        if not context_id or self._is_missing:
            return
        if not self._has_baseline:
            await self._poll(context_id, report=False)
        self._polling = asyncio.ensure_future(self._poll_repeatedly(context_id))

    async def begin_late(self, context_id: str) -> None:
        """Start to poll if the conversation was not known at the beginning of the turn."""
        if self._polling is None:
            await self.begin(context_id)

    async def catch_up(self, context_id: str) -> None:
        """Report the changes until now, before an answer that has arrived is shown; then go on."""
        if self._polling is not None and context_id:
            await self.stop()
            await self._poll(context_id, report=True, timeout=CATCH_UP_SECONDS)
            self._polling = asyncio.ensure_future(self._poll_repeatedly(context_id))

    async def finish(self, context_id: str) -> None:
        """Report the last changes and stop."""
        polled = self._polling is not None
        await self.stop()
        if context_id and not self._is_missing:
            await self._poll(context_id, report=polled)

    async def stop(self) -> None:
        task, self._polling = self._polling, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def forget(self) -> None:
        """Forget the items, because the conversation ended or was reset."""
        self._guid, self._items, self._has_baseline = "", {}, False

    async def _poll_repeatedly(self, context_id: str) -> None:
        failures = 0
        while failures < MAX_FAILURES and not self._is_missing:
            await asyncio.sleep(self._seconds)
            failures = 0 if await self._poll(context_id, report=True) else failures + 1

    async def _poll(self, context_id: str, *, report: bool, timeout: float = 10.0) -> bool:
        """Fetch the log once. Return whether the server answered with a log."""
        body = {"context_id": context_id, "length": LOG_LENGTH}
        try:
            document = await self._server.call(LOG_ROUTE, body, timeout=timeout)
        except BackendError:
            return False
        if document.status >= 400:
            self._is_missing = self._is_missing or document.status in (405, 501)
            return False
        self._apply(read_log(parse_json(document.body.decode("utf-8", "replace"))), report=report)
        return True

    def _apply(self, log: ZeroLog, *, report: bool) -> None:
        if log.guid != self._guid:
            self._guid, self._items = log.guid, {}
        self._has_baseline = True
        for item in log.items:
            if self._items.get(item.no) != item:
                self._items[item.no] = item
                if report:
                    self._on_item(item)
