"""Real servers for tests: the command line as a process, or the same parts in a thread with other limits."""

import asyncio
import os
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

import msgspec
from tests.conftest import at
from tests.frontends.server.server_client import ServerClient
from tests.process_starter import Started

from ostler.app.server import make_hubs
from ostler.frontends.server.asgi_app import make_app
from ostler.frontends.server.audit_log import AuditLog
from ostler.frontends.server.authentication import AccessRules, TokenGuard
from ostler.frontends.server.config import ServingConfig
from ostler.frontends.server.http_server import serve_http
from ostler.frontends.server.listening import allowed_hosts
from ostler.journal.log_file import LogFile
from ostler.models.model_choice import choose_model
from ostler.settings.effective import Settings
from ostler.settings.run_options import RunOptions
from ostler.settings.schema_services import ServerConfig
from ostler.storage.sqlite_accounts import SqliteAccounts
from ostler.storage.sqlite_database import SqliteDatabase
from ostler.storage.sqlite_store import SqliteSessions


class ServerProcess:
    """`ostler serve` with a scripted model. `start` after `stop` or `kill` uses the same port."""

    def __init__(self, ostler, model, *flags):
        self._ostler, self._flags, self.port = ostler, [*at(model), *flags], 0
        self.client = ServerClient(0, self.issue("ada"))
        self.start()

    def issue(self, user):
        """Return a new token."""
        return self._ostler("serve", "token", "issue", user).stdout.strip()

    def start(self):
        args = ["serve", "--bind", f"127.0.0.1:{self.port}", *self._flags]
        pipe, home = subprocess.PIPE, self._ostler.environment()
        streams = {"stdin": subprocess.DEVNULL, "stdout": pipe, "stderr": pipe, "encoding": "utf-8"}
        self.process = Started(args, cwd=self._ostler.workspace, env=home, **streams)
        lines = [self.process.stdout.readline() for _ in range(2)]
        assert lines[1].startswith("listening at "), "".join(lines) + self.process.stderr.read()
        self.port = self.client.port = int(lines[1].rpartition(":")[2])

    def stop(self, sig=signal.SIGTERM, timeout=5):
        """Send a signal and return the exit status."""
        os.kill(self.process.pid, sig)
        status = self.process.wait(timeout)
        self.process.stdout.close()
        self.process.stderr.close()
        return status

    def kill(self):
        self.stop(signal.SIGKILL)

    def close(self):
        if self.process.poll() is None:
            self.kill()


class ServerThread:
    """The server in a thread of this process, with the limits that a test needs."""

    def __init__(self, folder, model, models=(), tls=("", ""), **limits):
        self.database = SqliteDatabase(folder / "server.db")
        self.accounts = SqliteAccounts(self.database)
        self.config = msgspec.structs.replace(ServingConfig(), **limits)
        self._folder, self._model, self._models, self._tls = folder, model, models, tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.setblocking(False)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)  # accepted connections inherit it
        self.port = self._listener.getsockname()[1]
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._thread.start()
        assert self._ready.wait(10)
        self.client = self.client_of("ada")

    def client_of(self, user):
        return ServerClient(self.port, self.accounts.issue(user).text)

    async def _serve(self):
        settings, options = Settings.from_layers(()), RunOptions(cwd=str(self._folder))
        settings.config = msgspec.structs.replace(settings.config, server=ServerConfig(models=self._models))
        flags = {"base_url": self._model.base_url, "model": "scripted"}
        choice = await choose_model(settings, flags, {})
        self.hubs = make_hubs(
            options, choice, SqliteSessions(self.database), settings, self.config, self.accounts.limits
        )
        rules = AccessRules(allowed_hosts("127.0.0.1", self.port))
        audit = AuditLog(LogFile(self._folder / "audit.jsonl", 1_000_000, 1))
        guard = TokenGuard(make_app(self.hubs), self.accounts, rules, audit)
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        files = {"certificate": self._tls[0], "key": self._tls[1]}
        await serve_http(guard, self.hubs, [self._listener], self._stop, self._ready.set, **files)

    @property
    def connections(self):
        """The number of open TCP connections."""
        here = f"0100007F:{self.port:04X}"
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
        return sum(row[1] == here and row[3] == "01" for row in rows)

    def wait_for(self, is_true, seconds=10):
        """Wait until a condition holds, which no event announces."""
        end = time.monotonic() + seconds
        while not is_true():
            assert time.monotonic() < end
            time.sleep(0.01)

    def close(self):
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)
        assert not self._thread.is_alive()
        self._listener.close()
        self.database.close()
