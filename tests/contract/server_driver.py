"""Driver for the whole way: remote backend, a real server on loopback, and the engine there with a scripted model."""

import asyncio
import socket

from ostler.app.server import make_hubs
from ostler.backends.remote.backend import RemoteBackend
from ostler.backends.remote.plan import RemotePlan
from ostler.backends.remote.server import RemoteServer, ServerAddress
from ostler.backends.remote.stream import RetryDelays
from ostler.frontends.server.asgi_app import make_app
from ostler.frontends.server.audit_log import AuditLog
from ostler.frontends.server.authentication import AccessRules, TokenGuard
from ostler.frontends.server.config import ServingConfig
from ostler.frontends.server.http_server import serve_http
from ostler.frontends.server.listening import allowed_hosts
from ostler.http.dialer import Dialer
from ostler.http.url import ServerOrigin
from ostler.journal.log_file import LogFile
from ostler.models.model_choice import ModelChoice
from ostler.settings.effective import Settings
from ostler.settings.run_options import RunOptions
from ostler.storage.sqlite_accounts import SqliteAccounts
from ostler.storage.sqlite_database import SqliteDatabase
from ostler.storage.sqlite_store import SqliteSessions
from ostler.wire.client_frames import UserMessageFrame
from ostler.wire.frames_shared import HostInfo


class LoopServer:
    """A server in the event loop of the test, with its database in a folder."""

    def __init__(self, folder, make_model):
        folder.mkdir(exist_ok=True)
        self._database = SqliteDatabase(folder / "server.db")
        accounts = SqliteAccounts(self._database)
        self.token = accounts.issue("ada").text
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.setblocking(False)
        self.port = self._listener.getsockname()[1]
        options, choice = RunOptions(cwd=str(folder)), ModelChoice("scripted", make_model)
        sessions = SqliteSessions(self._database)
        self.hubs = make_hubs(options, choice, sessions, Settings.from_layers(()), ServingConfig())
        audit = AuditLog(LogFile(folder / "audit.jsonl", 1_000_000, 1))
        rules = AccessRules(allowed_hosts("127.0.0.1", self.port))
        self._app = TokenGuard(make_app(self.hubs), accounts, rules, audit)
        self._stopped, self._ready = asyncio.Event(), asyncio.Event()

    async def start(self):
        self._serving = asyncio.create_task(
            serve_http(self._app, self.hubs, [self._listener], self._stopped, self._ready.set)
        )
        await self._ready.wait()

    def connect(self, port=0):
        """Return a client of the server, through another port if one is given."""
        origin = ServerOrigin("http", "127.0.0.1", port or self.port)
        return RemoteServer(ServerAddress(origin), Dialer(origin), [("authorization", f"Bearer {self.token}")])

    async def stop(self):
        self._stopped.set()
        await self._serving
        self._listener.close()
        self._database.close()


def make_plan(tools, **more):
    return RemotePlan("test", HostInfo("host-1", "here"), lambda: tools, delays=RetryDelays(0.01, 0.05), **more)


class ServedEngine:
    """A remote backend whose server starts when the session is opened."""

    def __init__(self, driver, tools):
        self._driver = driver
        self._tools = tools
        self.context = self  # the scenarios start a turn of the remote side here

    async def open(self, start, context):
        self.server = LoopServer(self._driver.folder / ".server", self._driver.make_model)
        await self.server.start()
        self._backend = RemoteBackend(make_plan(self._tools), self.server.connect())
        return await self._backend.open(start, context)

    def remote_turn_started(self, prompt):
        """Let another client of the server send a message, after that of the local turn if the script has two turns."""
        hub = next(iter(self.server.hubs._hubs.values()))

        async def send():
            if self._driver.turns > 1:
                await self._driver.asked.wait()
            await hub.queue.receive(UserMessageFrame(prompt.text, client_message_id=prompt.id), "ada")

        self._sending = asyncio.create_task(send())

    async def run_turn(self, prompt):
        return await self._backend.run_turn(prompt)

    async def apply(self, change):
        return await self._backend.apply(change)

    async def aclose(self):
        await self._backend.aclose()
        await self.server.stop()
