"""Builds and runs the server: model, database, sessions of all users."""

import asyncio
import getpass
import hmac
import os
import secrets
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from ostler import __version__
from ostler.app.session_manager import LocalSessionManager
from ostler.app.tool_host import builtin_tools
from ostler.core.errors import UsageError
from ostler.core.protocols import Journal, Session, ToolRunner, Workspace
from ostler.core.sessions import OpenSessionRequest, SessionQuery, SessionSummary
from ostler.core.store import HostedSessions, HostedStore
from ostler.frontends.server.config import ServingConfig
from ostler.frontends.server.guard import AuthenticatedUser, RequestCredentials
from ostler.frontends.server.hub import ServerParts
from ostler.frontends.server.hubs import PROJECT, SessionHubs
from ostler.knowledge.trusted_settings import load_settings
from ostler.models.model_choice import ModelChoice, choose_model
from ostler.settings.effective import Settings
from ostler.settings.home import ensure_home
from ostler.settings.run_options import RunOptions
from ostler.text.stderr import notify
from ostler.tools.host import LocalToolHost

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


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
        from msgspec.structs import replace

        manager = LocalSessionManager(replace(self._options, ephemeral=True), notify, self._model)
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


class OneToken:
    """Accepts one token, which stands for the user who started the server."""

    def __init__(self, user: str) -> None:
        self.user = user
        self.token = secrets.token_urlsafe(32)

    async def __call__(self, credentials: RequestCredentials) -> AuthenticatedUser | None:
        scheme, _, token = credentials.authorization.partition(" ")
        if scheme.lower() == "bearer" and hmac.compare_digest(token.strip().encode(), self.token.encode()):
            return AuthenticatedUser(self.user)
        return None


def run_server(options: RunOptions, bind: str, database: str, config: ServingConfig) -> int:
    """Serve until a signal arrives. Return the exit status. Raises `OstlerError`."""
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise UsageError("the server's packages are missing", hint="install ostler[server]") from None
    return asyncio.run(_serve(options, bind, database, config))


async def _serve(options: RunOptions, bind: str, database: str, config: ServingConfig) -> int:
    from ostler.frontends.server.asgi_app import make_app
    from ostler.frontends.server.http_server import serve_until_signal
    from ostler.storage.sqlite_database import SqliteDatabase
    from ostler.storage.sqlite_store import SqliteSessions

    settings = load_settings(Path(options.cwd))
    model = await choose_model(settings, options.model, os.environ)
    listener = listen(bind or settings.config.server.bind)
    host, port = listener.getsockname()[:2]
    path = Path(database) if database else ensure_home(os.environ) / "server.db"
    db = SqliteDatabase(path)
    try:
        hubs = make_hubs(options, model, SqliteSessions(db), settings, config)
        token = OneToken(getpass.getuser())
        app = make_app(hubs, token, {f"{name}:{port}" for name in LOOPBACK}, settings.config.server.origins)

        def tell() -> None:
            sys.stdout.write(f"serving {model.description} at http://{host}:{port}\ntoken: {token.token}\n")
            sys.stdout.flush()

        return await serve_until_signal(app, hubs, [listener], tell)
    finally:
        db.close()


def listen(bind: str) -> socket.socket:
    """Return a listening socket on a loopback address. Raises `UsageError`."""
    host, _, port = bind.rpartition(":")
    if not port.isdigit():
        raise UsageError(f"{bind[:80]!r} is not HOST:PORT")
    if host not in LOOPBACK:
        raise UsageError(f"{host[:80]!r} is not a loopback address", hint="use 127.0.0.1:PORT")
    family = socket.AF_INET6 if host == "[::1]" else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host.strip("[]"), int(port)))
    except (OSError, OverflowError) as error:
        listener.close()
        raise UsageError(f"cannot listen on {bind[:80]}: {error}") from None
    listener.listen(1024)
    listener.setblocking(False)
    return listener
