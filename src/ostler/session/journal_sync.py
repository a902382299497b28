"""Syncs the journal to disk in threads; callers wait only where they need durability."""

import asyncio

from ostler.core.protocols import Journal


class JournalSync:
    """The running syncs of one journal."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._running: list[asyncio.Future[None]] = []

    def start(self) -> None:
        """Start a sync in a thread; the next `wait_synced` waits for it."""
        self._running.append(asyncio.get_running_loop().run_in_executor(None, self._journal.sync))

    async def wait_synced(self) -> None:
        """Wait until everything appended so far is on disk. Raises the error of a sync that failed in between."""
        self.start()
        syncs = tuple(self._running)
        outcomes = await asyncio.gather(*map(asyncio.shield, syncs), return_exceptions=True)
        self._running = [sync for sync in self._running if sync not in syncs]
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome

    async def aclose(self) -> None:
        """Wait for the running syncs, so that no thread uses the journal afterwards."""
        await asyncio.gather(*self._running, return_exceptions=True)
