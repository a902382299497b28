"""When what was kept is on disk: begun beside other work, awaited where something depends on it."""

import asyncio

from ostler.core.protocols import Journal


class JournalSync:
    """The syncs of one journal, in threads, so that no disk holds up the session."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._running: list[asyncio.Future[None]] = []

    def start(self) -> None:
        """Sync what is there now; whoever next needs to be sure waits for it."""
        self._running.append(asyncio.get_running_loop().run_in_executor(None, self._journal.sync))

    async def wait_synced(self) -> None:
        """All that was kept until now is on disk when this returns; a sync that failed meanwhile is told here."""
        self.start()
        begun = tuple(self._running)
        outcomes = await asyncio.gather(*map(asyncio.shield, begun), return_exceptions=True)
        self._running = [sync for sync in self._running if sync not in begun]
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome

    async def aclose(self) -> None:
        """No thread touches the journal after this."""
        await asyncio.gather(*self._running, return_exceptions=True)
