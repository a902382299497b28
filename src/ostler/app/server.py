"""Builds and runs the server: model, database, sessions of all users."""

import asyncio
import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec

from ostler import __version__
from ostler.app.server_storage import open_database, server_folder
from ostler.app.session_manager import LocalSessionManager
from ostler.app.tool_host import builtin_tools
from ostler.core.accounts import Accounts
from ostler.core.errors import UsageError
from ostler.core.protocols import Journal, Session, ToolRunner, Workspace
from ostler.core.sessions import OpenSessionRequest, SessionQuery, SessionSummary
from ostler.core.store import HostedSessions, HostedStore
from ostler.frontends.server.config import ServingConfig
from ostler.frontends.server.hub import ServerParts
from ostler.frontends.server.hubs import PROJECT, SessionHubs
from ostler.frontends.server.listening import ListenOptions, allowed_hosts, check_accounts, check_listening
from ostler.knowledge.trusted_settings import load_settings
from ostler.models.model_choice import ModelChoice, choose_model
from ostler.settings.effective import Settings
from ostler.settings.run_options import RunOptions
from ostler.settings.schema_services import ServerConfig
from ostler.storage.sqlite_accounts import SqliteAccounts
from ostler.text.stderr import notify
from ostler.tools.host import LocalToolHost

if TYPE_CHECKING:
    from starlette.types import ASGIApp

AUDIT_BYTES, AUDIT_FILES = 10_000_000, 5


class AnyFolderStore:
    """The sessions of a user, in whatever folder of their machine they work."""

    def __init__(self, store: HostedStore) -> None:
        self._store = store

    def open(self, project: str, session_id: str = "") -> Journal:
        return self._store.open(PROJECT, session_id)

    def find(self, project: str, session_ref: str) -> str:
        return self._store.find(PROJECT, session_ref)

    def backend(self, session_id: str) -> str:
        return self._store.backend(session_id)

    def list(self, query: SessionQuery) -> Sequence[SessionSummary]:
        return self._store.list(query)

    def fork(self, session_id: str, seq: int = 0) -> str:
        return self._store.fork(session_id, seq)

    def rename(self, session_id: str, title: str) -> None:
        self._store.rename(session_id, title)

    def delete(self, session_id: str) -> None:
        self._store.delete(session_id)


class NoTools:
    """A `ToolRunner` without tools, for a plain chat."""

    async def open(self, context: object) -> None: ...

    def specs(self) -> Sequence[object]:
        return ()

    async def run(self, call: object, context: object) -> None: ...

    async def aclose(self) -> None: ...


class SessionOpener:
    """Opens the sessions of all users with the server's model."""

    def __init__(self, options: RunOptions, model: ModelChoice, sessions: HostedSessions, settings: Settings) -> None:
        self._options = options
        self._model = model
        self._sessions = sessions
        self._settings = settings

    async def open(self, owner: str, request: OpenSessionRequest, tools: ToolRunner) -> Session:
        store = AnyFolderStore(self._sessions.of(owner))
        manager = LocalSessionManager(self._options, notify, self._model, store=store)
        return await manager.open(request, tools=tools)

    async def open_chat(self, owner: str) -> Session:
        manager = LocalSessionManager(msgspec.structs.replace(self._options, ephemeral=True), notify, self._model)
        request = OpenSessionRequest("/", interactive=False)
        return await manager.open(request, tools=cast(ToolRunner, NoTools()))

    def session_tools(self) -> ToolRunner:
        """Return the tools that act on the session. None of them uses a workspace."""
        workspace = cast(Workspace, None)
        tools = [tool for tool in builtin_tools(self._settings) if tool.spec.runs_in == "session"]
        return LocalToolHost(tools, workspace, place="session")


def make_hubs(
    options: RunOptions, model: ModelChoice, sessions: HostedSessions, settings: Settings, config: ServingConfig
) -> SessionHubs:
    """Return the sessions of a server."""
    opener = SessionOpener(options, model, sessions, settings)
    parts = ServerParts(config, opener.open, opener.open_chat, __version__, opener.session_tools)
    return SessionHubs(sessions, parts)


class ServeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The flags of `ostler serve`; empty values are taken from the settings."""

    bind: str = ""
    certificate: str = ""
    key: str = ""
    allow_plain: bool = False
    names: tuple[str, ...] = ()
    database: str = ""
    expire_days: float = 30.0


def run_server(options: RunOptions, serve: ServeOptions) -> int:
    """Serve until a signal arrives. Return the exit status. Raises `OstlerError`."""
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise UsageError("the server's packages are missing", hint="install ostler[server]") from None
    return asyncio.run(_serve(options, serve))


async def _serve(options: RunOptions, serve: ServeOptions) -> int:
    from ostler.frontends.server.http_server import serve_until_signal
    from ostler.storage.sqlite_store import SqliteSessions

    settings = load_settings(Path(options.cwd))
    address = listen_options(serve, settings.config.server)
    check_listening(address)
    model = await choose_model(settings, options.model, os.environ)
    database = open_database(serve.database or _stored_in(settings.config.server))
    listener: socket.socket | None = None
    try:
        accounts = SqliteAccounts(database)
        check_accounts(accounts)
        listener = listen(address)
        host, port = listener.getsockname()[:2]
        hubs = make_hubs(options, model, SqliteSessions(database), settings, serving_config(serve, settings))
        app = _guarded(hubs, accounts, address, port, settings.config.server.origins)
        scheme, name = "https" if address.certificate else "http", f"[{host}]" if ":" in host else host

        def tell() -> None:
            sys.stdout.write(f"serving {model.description} at {scheme}://{name}:{port}\n")
            sys.stdout.flush()

        return await serve_until_signal(app, hubs, [listener], tell, certificate=address.certificate, key=address.key)
    finally:
        if listener:
            listener.close()
        database.close()


def _guarded(
    hubs: SessionHubs, accounts: Accounts, address: ListenOptions, port: int, origins: Sequence[str]
) -> "ASGIApp":
    from ostler.frontends.server.asgi_app import make_app
    from ostler.frontends.server.audit_log import AuditLog
    from ostler.frontends.server.authentication import AccessRules, TokenGuard
    from ostler.journal.log_file import LogFile

    audit = AuditLog(LogFile(server_folder() / "audit.jsonl", AUDIT_BYTES, AUDIT_FILES))
    rules = AccessRules(allowed_hosts(address.host, port, address.names), frozenset(origins))
    return TokenGuard(make_app(hubs), accounts, rules, audit)


def serving_config(serve: ServeOptions, settings: Settings) -> ServingConfig:
    """Return the limits of the server."""
    limits, standard = settings.config.server.limits, ServingConfig()
    return ServingConfig(
        expire_days=serve.expire_days,
        messages_per_minute=limits.messages_per_minute or standard.messages_per_minute,
        calls_per_minute=limits.tool_calls_per_minute or standard.calls_per_minute,
        max_output=min(limits.output_bytes or standard.max_output, standard.max_frame // 2),
        open_sessions_per_user=limits.sessions or standard.open_sessions_per_user,
    )


def listen_options(serve: ServeOptions, config: ServerConfig) -> ListenOptions:
    """Return where to listen. Raises `UsageError`."""
    bind = serve.bind or config.bind
    host, _, port = bind.rpartition(":")
    if not port.isascii() or not port.isdigit() or int(port[:6]) > 65535:
        raise UsageError(f"{bind[:80]!r} is not HOST:PORT", hint="use for example --bind 127.0.0.1:8034")
    tls = config.tls
    return ListenOptions(
        host=host.removeprefix("[").removesuffix("]"),
        port=int(port),
        certificate=serve.certificate or (tls.cert if tls and not serve.key else ""),
        key=serve.key or (tls.key if tls and not serve.certificate else ""),
        allow_plain=serve.allow_plain,
        names=serve.names,
    )


def listen(address: ListenOptions) -> socket.socket:
    """Return a listening socket. Raises `UsageError`."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((address.host, address.port))
        listener.listen(1024)
    except OSError as error:
        listener.close()
        raise UsageError(f"cannot listen on {address.host[:80]}:{address.port}: {error}") from None
    listener.setblocking(False)
    return listener


def _stored_in(config: ServerConfig) -> str:
    store = str(config.store or "")
    if "://" in store:
        raise UsageError("server.store must be a SQLite file", hint="other databases are not supported yet")
    return store
