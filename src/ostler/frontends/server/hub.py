"""One session of the server: its clients, its tool host, and the session while it is open."""

import asyncio
import hashlib
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Literal

import msgspec

from ostler.core.errors import JournalError, UsageError
from ostler.core.events import TurnEnded
from ostler.core.prompt import Prompt
from ostler.core.protocols import Session, ToolRunner
from ostler.core.sessions import OpenSessionRequest, SetOption
from ostler.core.store import HostedStore
from ostler.frontends.server.config import ServingConfig
from ostler.frontends.server.connection import ClientConnection
from ostler.frontends.server.host_link import HostLink, check_manifest
from ostler.frontends.server.host_record import HostRecord
from ostler.frontends.server.message_queue import MessageQueue
from ostler.frontends.server.remote_tools import RemoteTools
from ostler.frontends.server.turn_metadata import snapshot
from ostler.http.rate_limit import RateLimit
from ostler.wire.client_frames import ApprovalRequest, ApprovalResolved
from ostler.wire.frames_shared import PROTOCOL_VERSION, CloseCode, RemoteWorkspace, ToolManifest
from ostler.wire.server_frames import (
    ErrorMessage,
    ManifestChanged,
    QueueChanged,
    Resync,
    ServerFrame,
    SessionCreated,
)

log = logging.getLogger("ostler.server")
MAX_TRACES = 1000  # of turns whose end clients may still ask for
CLIENT_OPTIONS = ("model", "thinking")
OpenSession = Callable[[str, OpenSessionRequest, ToolRunner, RemoteWorkspace | None], Awaitable[Session]]


def check_options(names: Iterable[str]) -> None:
    """Raise `UsageError` for an option that a client cannot set: modes and agents are those of the client's machine."""
    for name in names:
        if name not in CLIENT_OPTIONS:
            raise UsageError(f"a client cannot set the option {name[:80]!r}, only {' and '.join(CLIENT_OPTIONS)}")


class ServerParts(msgspec.Struct, frozen=True):
    """What all sessions of a server share. `open_session` gets the owner, the request, the tools and
    what the client's folder defines.

    `open_chat` opens a session without tools that is not stored, for a user. `models` are the names to choose from.
    """

    config: ServingConfig
    open_session: OpenSession
    open_chat: Callable[[str], Awaitable[Session]]
    version: str
    session_tools: Callable[[], ToolRunner | None] = lambda: None
    models: tuple[str, ...] = ()


class SessionHub:
    """Lives while the session has clients or a turn. `record` is what the store has about the tool host."""

    def __init__(self, owner: str, session_id: str, store: HostedStore, record: HostRecord, parts: ServerParts) -> None:
        self.owner = owner
        self.id = session_id
        self.config = parts.config
        self.messages = RateLimit(
            parts.config.messages_per_minute
        )  # of all clients, so that connecting again is no help
        self.record = record
        self.epoch = record.epoch
        self.connections: list[ClientConnection] = []
        self.session: Session | None = None
        self.host_connection: ClientConnection | None = None
        self.asks: dict[str, tuple[ClientConnection, ApprovalRequest]] = {}
        self.used_at = time.monotonic()
        self.closing = False
        self._uses = 0
        self._store = store
        self._parts = parts
        self._lock = asyncio.Lock()
        self._traces: dict[str, str] = {}
        self.link = HostLink(session_id, self.epoch, self.publish, parts.config.host_wait)
        self.link.info, self.link.tools = record.host, check_manifest(ToolManifest(record.tools))
        self.link.answers_checks = record.answers_checks
        self.queue = MessageQueue(self)
        self.tools = self._make_tools()

    @property
    def last_seq(self) -> int:
        return self.session.last_seq if self.session else 0

    @property
    def activity(self) -> Literal["", "idle", "working", "waiting"]:
        """What the open session does: it works, waits for its user's answer, or does nothing."""
        if self.session is None:
            return ""
        if self.asks or self.session.state.questions:
            return "waiting"
        return "working" if self.session.turn else "idle"

    @property
    def is_idle(self) -> bool:
        """Whether nobody is connected and nothing runs."""
        busy = self.session is not None and (self.session.turn is not None or bool(self.queue.prompts))
        return not self.connections and not busy and not self._uses

    def use_config(self, config: ServingConfig) -> None:
        """Use the limits that the user has now."""
        self.config, self.used_at = config, time.monotonic()
        self.messages.per_minute = config.messages_per_minute

    def keep_use(self) -> None:
        """Keep this hub while a transport is about to attach a client."""
        self._uses += 1

    def release_use(self) -> None:
        self._uses -= 1
        self.used_at = time.monotonic()

    def publish(self, frame: ServerFrame) -> None:
        """Send a message to every client that announced its type."""
        for connection in tuple(self.connections):
            connection.send(frame)

    def trace_of(self, turn_id: str) -> str:
        """Return the trace id of a turn: the client's, or one that is always the same."""
        return self._traces.get(turn_id) or hashlib.sha256(f"{self.id}/{turn_id}".encode()).hexdigest()[:32]

    # -- the session -----------------------------------------------------------------------------------------------

    async def open_session(self, options: Mapping[str, str] | None = None) -> Session:
        """Open the session unless it is open, and continue an interrupted turn. Raises `OstlerError`.

        `options` are set and saved; if one of them is not possible, nothing is saved.
        """
        async with self._lock:
            if self.closing:
                raise JournalError("the session is closed", code="session_closed")
            if self.session is None:
                self.session = await self._open(options or {})
                self.queue.load(self.session)
            for name, value in (options or {}).items():
                if self.session.info.option(name) != value and not await self.session.apply(SetOption(name, value)):
                    raise UsageError(f"the option {name[:80]!r} cannot be set now")
        if options:
            await self._save(msgspec.structs.replace(self.record, options={**self.record.options, **options}))
        return self.session

    async def _open(self, options: Mapping[str, str]) -> Session:
        record, stored = self.record, self.record.options
        request = OpenSessionRequest(record.root or "/", resume=self.id, options={**stored, **options}, takeover=True)
        try:
            return await self._parts.open_session(self.owner, request, self.tools, record.workspace)
        except UsageError as error:
            if options or not stored:
                raise
            log.warning("stored options are ignored: %s", error, extra={"session": self.id})
        request = msgspec.structs.replace(request, options={})
        return await self._parts.open_session(self.owner, request, self.tools, record.workspace)

    async def close_session(self, *, release: bool = False) -> None:
        """Close the session. With `release` its turn is not ended, so that another process continues it."""
        async with self._lock:
            session, self.session = self.session, None
            if session is None:
                return
            self.link.releasing = release
            self.queue.stop()
            await (session.release() if release else session.aclose())

    def _make_tools(self) -> RemoteTools:
        def current_trace() -> str:
            turn = self.session.turn if self.session else None
            return self.trace_of(turn.id) if turn else ""

        return RemoteTools(self.link, self.config, self._parts.session_tools(), current_trace)

    # -- connections -----------------------------------------------------------------------------------------------

    async def attach(self, connection: ClientConnection) -> None:
        """Add a client: `session.created`, the log from its position on, and what is open. Raises `OstlerError`."""
        try:
            check_options(connection.hello.options)
            if connection.is_host:
                await self._attach_host(connection)
            session = await self.open_session(connection.hello.options)
        except BaseException:
            self.detach(connection)
            raise
        if connection.close_code:
            return
        self.connections.append(connection)
        since = self._greet(connection, session)
        connection.start(session, since)
        for _, ask in self.asks.values():
            connection.send(ask)
        if self.queue.prompts:
            connection.send(QueueChanged(self.id, self.queue.items()))
        if connection is self.host_connection:
            self.link.connect(connection)
        for status in self.link.statuses():
            if status.waiting_calls:
                connection.send(status)

    def detach(self, connection: ClientConnection) -> None:
        """Remove a client whose transport is gone. Nothing else stops."""
        connection.stop()
        self.used_at = time.monotonic()
        if connection in self.connections:
            self.connections.remove(connection)
        if connection is self.host_connection:
            self.host_connection = None
            self.link.disconnect(connection)
        for ask_id, (host, _) in tuple(self.asks.items()):
            if host is connection:
                del self.asks[ask_id]
                self.publish(ApprovalResolved(ask_id, self.id))

    def close_connections(self, code: int, error: ErrorMessage) -> None:
        for connection in tuple(self.connections):
            connection.close(code, error.message, error)

    async def change_manifest(self, manifest: ToolManifest) -> None:
        """Use another manifest of the same host from now on. Raises `ManifestError`."""
        self.link.tools = check_manifest(manifest)
        await self._save(msgspec.structs.replace(self.record, tools=manifest.tools))
        self.tools.report_change()
        self.publish(ManifestChanged(self.id, tuple(self.link.tools)))

    async def _attach_host(self, connection: ClientConnection) -> None:
        hello, current = connection.hello, self.host_connection
        assert hello.tool_manifest is not None
        tools = check_manifest(hello.tool_manifest)
        if current and current.hello.host.id != hello.host.id and not hello.take_host:
            text = f"{self.link.info.name or 'another client'} runs the tools of this session"
            connection.close(CloseCode.REPLACED, text, ErrorMessage(self.id, text, "host_taken"))
            return
        if current:
            text = "another connection runs the tools of this session now"
            current.close(CloseCode.REPLACED, text, ErrorMessage(self.id, text, "host_taken"))
        old_root = self.record.root
        await self._save(self.record.with_hello(hello))
        if old_root != self.record.root and self.session and not self.session.turn:
            await self.close_session()  # it is opened again with the new root
        self.host_connection = connection
        if hello.take_host:
            self.link.give_up_calls(hello.host)
        self.link.set_host(hello.host, tools)
        self.link.answers_checks = self.record.answers_checks
        self.tools.report_change()

    def _greet(self, connection: ClientConnection, session: Session) -> int:
        """Send `session.created`, and `resync` if the log cannot be continued. Return where to continue."""
        resume, last = connection.hello.resume, session.last_seq
        reason = ""
        if resume and resume.epoch != self.epoch:
            reason = "epoch"
        elif resume and resume.last_seq > last:
            reason = "ahead"
        elif resume and (resume.last_seq < 0 or last - resume.last_seq > self.config.replay_records):
            reason = "expired"
        connection.outbox.put(
            SessionCreated(
                self.id,
                self.epoch,
                resume.last_seq if resume and not reason else last,
                PROTOCOL_VERSION,
                self._parts.version,
                tuple(sorted(connection.features)),
                "host" if connection.is_host else "viewer",
                self.link.info,
                connection.is_host or self.link.connection is not None,
                session.turn.id if session.turn else "",
                bool(resume and not reason),
                self.tools.session_tool_names(),
                self.config.limits(),
                title=session.state.title,
                model=session.info.option("model"),
            )
        )
        if reason:
            assert reason in ("epoch", "ahead", "expired")
            connection.outbox.put(Resync(self.id, reason, last, self.epoch, snapshot(session)))  # type: ignore[arg-type]
        return resume.last_seq if resume and not reason else last

    async def _save(self, record: HostRecord) -> None:
        if record != self.record:
            self.record = record
            await asyncio.to_thread(self._store.set_host, self.id, record.root, record.encode())

    async def set_option(self, name: str, value: str) -> None:
        await self._save(msgspec.structs.replace(self.record, options={**self.record.options, name: value}))

    # -- turns -----------------------------------------------------------------------------------------------------

    def start_turn(self, session: Session, prompt: Prompt, trace_id: str) -> str:
        """Start a turn and return its id. Raises `OstlerError`."""
        turn = session.start(prompt)
        if trace_id:
            self._traces[turn.id] = trace_id[:64]
        return turn.id

    def log_turn(self, ended: TurnEnded, seconds: float) -> None:
        while len(self._traces) > MAX_TRACES:
            del self._traces[next(iter(self._traces))]
        fields = {
            "user": self.owner,
            "turn": ended.turn_id,
            "reason": ended.reason,
            "ms": round(seconds * 1000),
            "code": ended.fault.code if ended.fault else "",
            "trace": self.trace_of(ended.turn_id),
        }
        log.info("turn ended", extra={"session": self.id, "fields": fields})
        if ended.fault and ended.fault.code == "bug":
            log.error("the turn failed: %s", ended.fault, extra={"session": self.id})
