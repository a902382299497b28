"""All sessions of the server: creates, finds, changes and deletes them, and closes those that nobody uses."""

import asyncio
import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec

from ostler.core.accounts import UserLimits
from ostler.core.errors import JournalError, OstlerError, UsageError
from ostler.core.sessions import Rename, SessionQuery, SessionSummary
from ostler.core.store import HostedSessions
from ostler.frontends.server.host_record import HostRecord
from ostler.frontends.server.http_errors import HttpError
from ostler.frontends.server.hub import ServerParts, SessionHub
from ostler.wire.frames_shared import CloseCode
from ostler.wire.server_frames import ErrorMessage

log = logging.getLogger("ostler.server")
PROJECT = "server"  # a session of a server belongs to no folder of this machine
SWEEP_SECONDS = 5.0
EXPIRE_SECONDS = 3600.0


class SessionHubs:
    """The sessions that are in use, by id, and the stored ones of each user."""

    def __init__(
        self,
        sessions: HostedSessions,
        parts: ServerParts,
        limits: Callable[[str], UserLimits] = lambda user: UserLimits(),
    ) -> None:
        """`limits` returns those of a user; they are read again for each connection."""
        self._limits = limits
        self.parts = parts
        self.draining = False
        self.on_drain: list[Callable[[], None]] = []  # end streams that belong to no session yet
        self._sessions = sessions
        self._hubs: dict[str, SessionHub] = {}
        self._chats = Counter[str]()  # that run, by user
        self._lock = asyncio.Lock()
        self._sweeper: asyncio.Task[None] | None = None
        self._expired_at = -math.inf

    async def start(self) -> None:
        """Continue the turns that an earlier process left, and begin to close what is not used."""
        for found in await asyncio.to_thread(self._sessions.interrupted):
            try:
                hub = await self.get(found.owner, found.id)
                await hub.open_session()
            except OstlerError as error:
                log.warning("the turn cannot be continued: %s", error, extra={"session": found.id})
        self._sweeper = asyncio.create_task(self._sweep(), name="close unused sessions")

    async def get(self, owner: str, session_id: str) -> SessionHub:
        """Return a user's session. Raises `UsageError` if there is none."""
        config = self.parts.config.for_user(await asyncio.to_thread(self._limits, owner))
        async with self._lock:
            hub = self._hubs.get(session_id)
            if hub is None:
                parts = msgspec.structs.replace(self.parts, config=config)
                store = self._sessions.of(owner)
                _, data = await asyncio.to_thread(store.host, session_id)
                hub = self._hubs[session_id] = SessionHub(owner, session_id, store, HostRecord.decode(data), parts)
            elif hub.owner != owner:
                raise UsageError(f"session {session_id[:120]!r} not found", code="session_not_found")
            hub.use_config(config)
            return hub

    async def create(self, owner: str, record: HostRecord, title: str = "", model: str = "") -> SessionHub:
        """Create a session in the store. It is opened when it is used. Raises `OstlerError` for an unusable model."""

        def make() -> str:
            store = self._sessions.of(owner)
            journal = store.open(PROJECT)
            journal.close()
            store.set_host(journal.session_id, record.root, record.encode())
            if title:
                store.rename(journal.session_id, title)
            return journal.session_id

        hub = await self.get(owner, await asyncio.to_thread(make))
        if model:
            try:
                await hub.open_session({"model": model})
            except OstlerError:
                await self.delete(hub)
                raise
        return hub

    async def list(self, owner: str, query: SessionQuery) -> Sequence[SessionSummary]:
        return await asyncio.to_thread(self._sessions.of(owner).list, query)

    def activity(self, session_id: str) -> str:
        """Return what a session does, if it is open in this process."""
        hub = self._hubs.get(session_id)
        return hub.activity if hub else ""

    async def change(self, hub: SessionHub, title: str | None, model: str | None) -> None:
        """Set title and model. Raises `OstlerError`."""
        session = await hub.open_session()
        if title is not None:
            await session.apply(Rename(title))
            await session.wait_saved()
        if model is not None:
            await hub.open_session({"model": model})

    async def fork(self, hub: SessionHub, seq: int) -> SessionHub:
        """Copy a session. Raises `UsageError` if it has no such record."""
        if hub.session:
            await hub.session.wait_saved()
        store = self._sessions.of(hub.owner)
        new_id = await asyncio.to_thread(store.fork, hub.id, seq)
        record = msgspec.structs.replace(hub.record, epoch=HostRecord.new().epoch)
        await asyncio.to_thread(store.set_host, new_id, record.root, record.encode())
        return await self.get(hub.owner, new_id)

    async def delete(self, hub: SessionHub) -> None:
        """End a session's turn, delete it and close its connections. Raises `OstlerError`."""
        hub.closing = True
        try:
            await hub.close_session()
            await asyncio.to_thread(self._sessions.of(hub.owner).delete, hub.id)
        except BaseException:
            hub.closing = self.draining
            text = "the session was closed, because it was to be deleted; that failed"
            hub.close_connections(CloseCode.RESTART, ErrorMessage(hub.id, text, "busy"))
            raise
        self._hubs.pop(hub.id, None)
        hub.close_connections(CloseCode.DELETED, ErrorMessage(hub.id, "the session was deleted", "deleted"))

    async def summary(self, hub: SessionHub) -> SessionSummary:
        """Return the stored summary of a session. Raises `UsageError`."""
        return await asyncio.to_thread(self._sessions.of(hub.owner).summary, hub.id)

    def connection_count(self, owner: str) -> int:
        return sum(len(hub.connections) for hub in self._hubs.values() if hub.owner == owner)

    def check_connections(self, hub: SessionHub) -> None:
        """Raise `HttpError` if the session or its user has too many connections or sessions in use."""
        config, owner = hub.config, hub.owner
        if len(hub.connections) >= config.connections_per_session:
            raise HttpError(429, "rate_limited", f"the session has {len(hub.connections)} connections already")
        if (count := self.connection_count(owner)) >= config.connections_per_user:
            raise HttpError(429, "rate_limited", f"{owner} has {count} connections already")
        if hub.session is None:
            self._check_sessions(owner, config.open_sessions_per_user)

    async def begin_chat(self, owner: str) -> None:
        """Count a chat that is not stored as a session in use. Raises `HttpError` if there are too many."""
        if self.draining:
            raise HttpError(503, "draining", "the server is shutting down")
        limits = await asyncio.to_thread(self._limits, owner)
        self._check_sessions(owner, self.parts.config.for_user(limits).open_sessions_per_user)
        self._chats[owner] += 1

    def end_chat(self, owner: str) -> None:
        self._chats[owner] -= 1

    def _check_sessions(self, owner: str, limit: int) -> None:
        used = (hub for hub in self._hubs.values() if hub.owner == owner and not hub.is_idle)
        count = sum(hub.session is not None for hub in used) + self._chats[owner]
        if count >= limit:
            raise HttpError(429, "rate_limited", f"{owner} has {count} sessions in use already")

    async def drain(self) -> None:
        """Close all connections and release all sessions, so that another process continues their turns."""
        self.draining = True
        for end_streams in self.on_drain:
            end_streams()
        if self._sweeper:
            self._sweeper.cancel()
        hubs = tuple(self._hubs.values())
        for hub in hubs:
            hub.closing = True
            hub.close_connections(CloseCode.RESTART, ErrorMessage(hub.id, "the server is restarting", "draining"))
        await asyncio.gather(*(hub.close_session(release=True) for hub in hubs), return_exceptions=True)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            await self._close_unused()
            days = self.parts.config.expire_days
            if days and time.monotonic() - self._expired_at > EXPIRE_SECONDS:
                self._expired_at = time.monotonic()
                before = time.time() - days * 86400
                for session_id in await asyncio.to_thread(self._sessions.delete_expired, before):
                    self._hubs.pop(session_id, None)
                    log.info("the session expired and was deleted", extra={"session": session_id})

    async def _close_unused(self) -> None:
        limit = time.monotonic() - self.parts.config.idle_close
        for hub in tuple(self._hubs.values()):
            if hub.is_idle and hub.used_at < limit:
                async with self._lock:
                    if hub.is_idle:
                        del self._hubs[hub.id]
                        with suppress(JournalError):
                            await hub.close_session()
