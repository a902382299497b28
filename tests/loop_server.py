"""A server in the event loop of a test, with a real socket and database, and a proxy that cuts its connections."""

import asyncio
import random
import socket

from ostler.app.server import make_hubs
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
from ostler.http.server_closing import stop_accepting
from ostler.http.url import ServerOrigin
from ostler.journal.log_file import LogFile
from ostler.models.model_choice import ModelChoice
from ostler.settings.effective import Settings
from ostler.settings.run_options import RunOptions
from ostler.storage.sqlite_accounts import SqliteAccounts
from ostler.storage.sqlite_database import SqliteDatabase
from ostler.storage.sqlite_store import SqliteSessions


class CutProxy:
    """Forwards TCP connections. While `cuts_left` is not 0, each is reset after a random number of bytes."""

    def __init__(self, port):
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.random = random.Random(0)
        self.cuts_left = self.cuts = 0
        self.largest = 4000
        self.blocks_websockets = False  # like some companies' proxies
        self._open = set()
        self._silent = set()
        self._tasks = set()

    async def start(self):
        self._server = await asyncio.start_server(self._serve, sock=self._listener)

    async def stop(self):
        await stop_accepting(self._server.sockets)
        self._server.close()
        self.reset_all()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def reset_all(self):
        """Cut all connections."""
        for writer in tuple(self._open):
            writer.transport.abort()

    def silence_all(self):
        """Forward nothing more on the connections that are open now, and close nothing."""
        self._silent |= self._open

    async def _serve(self, reader, writer):
        task = asyncio.current_task()
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
            return
        self._open |= {writer, far_writer}
        try:
            if self.blocks_websockets:
                head = await reader.readuntil(b"\r\n\r\n")
                if b"upgrade: websocket" in head.lower():
                    writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 7\r\nConnection: close\r\n\r\nblocked")
                    await writer.drain()
                    raise ConnectionResetError
                far_writer.write(head)
            await asyncio.gather(self._copy(reader, far_writer), self._copy(far_reader, writer))
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self._open -= {writer, far_writer}
            writer.transport.abort()
            far_writer.transport.abort()
            await asyncio.sleep(0)

    async def _copy(self, reader, writer):
        left = None
        while data := await reader.read(65536):
            if writer in self._silent:
                continue
            if self.cuts_left and left is None:
                left = self.random.randint(1, self.largest)
            if self.cuts_left and left is not None and len(data) >= left:
                writer.write(data[:left])
                self.cuts_left -= 1
                self.cuts += 1
                raise ConnectionResetError
            if left is not None:
                left -= len(data)
            writer.write(data)
            await writer.drain()
        raise ConnectionResetError


class LoopServer:
    """A server in the event loop of the test, with its database in a folder."""

    def __init__(self, folder, make_model, **limits):
        folder.mkdir(exist_ok=True)
        self._database = SqliteDatabase(folder / "server.db")
        accounts = SqliteAccounts(self._database)
        self.token = accounts.issue("ada").text
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.setblocking(False)
        self.proxy = CutProxy(self._listener.getsockname()[1])
        self.port = self._listener.getsockname()[1]
        options, choice = RunOptions(cwd=str(folder)), ModelChoice("scripted", make_model)
        sessions = SqliteSessions(self._database)
        self.hubs = make_hubs(options, choice, sessions, Settings.from_layers(()), ServingConfig(**limits))
        audit = AuditLog(LogFile(folder / "audit.jsonl", 1_000_000, 1))
        rules = AccessRules(allowed_hosts("127.0.0.1", self.port, [f"127.0.0.1:{self.proxy.port}"]))
        self._app = TokenGuard(make_app(self.hubs), accounts, rules, audit)
        self._stopped, self._ready = asyncio.Event(), asyncio.Event()

    async def start(self):
        self._serving = asyncio.create_task(
            serve_http(self._app, self.hubs, [self._listener], self._stopped, self._ready.set)
        )
        await self._ready.wait()
        await self.proxy.start()

    def connect(self, *, through_proxy=False):
        """Return a client of the server."""
        origin = ServerOrigin("http", "127.0.0.1", self.proxy.port if through_proxy else self.port)
        return RemoteServer(ServerAddress(origin), Dialer(origin), [("authorization", f"Bearer {self.token}")])

    async def stop(self):
        await self.proxy.stop()
        self._stopped.set()
        await self._serving
        self._listener.close()
        self._database.close()


def make_plan(tools, name="here", **more):
    return RemotePlan("test", name, lambda: tools, delays=RetryDelays(0.01, 0.05), **more)
