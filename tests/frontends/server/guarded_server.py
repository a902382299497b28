"""A real server on a loopback port: a small application behind the guard, with real accounts and sessions."""

import asyncio
import http.client
import json
import os
import socket
import threading

import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route, WebSocketRoute

from ostler.core.errors import UsageError
from ostler.frontends.server.audit_log import AuditLog
from ostler.frontends.server.authentication import AccessRules, TokenGuard
from ostler.frontends.server.failure_limit import FailureLimit
from ostler.frontends.server.listening import allowed_hosts
from ostler.frontends.server.pairing_exchange import PairingExchange, TokenRevocation
from ostler.frontends.server.peer_protocols import HttpPeerProtocol, WebSocketPeerProtocol
from ostler.frontends.server.unix_socket import listen_unix
from ostler.journal.log_file import LogFile
from ostler.storage.sqlite_accounts import SqliteAccounts
from ostler.storage.sqlite_database import SqliteDatabase
from ostler.storage.sqlite_store import SqliteSessions
from ostler.wire.pairing import PAIR_PATH

ORIGIN = "https://team.example"


class GuardedServer:
    """Runs in a thread of its own; `calls` has the paths that reached the application."""

    def __init__(self, folder, *, recheck=0.05, unix=None, failures=None, pairing_failures=None, tls=("", "")):
        self.audit_file = folder / "audit.jsonl"
        self.database = SqliteDatabase(folder / "server" / "ostler.db")
        self.accounts = SqliteAccounts(self.database)
        self.sessions = SqliteSessions(self.database)
        self.audit = AuditLog(LogFile(self.audit_file, 1_000_000, 1))
        self.calls, self.stopped = [], threading.Event()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        hosts = allowed_hosts("127.0.0.1", self.port)
        rules = AccessRules(
            hosts, frozenset({ORIGIN}), frozenset({"/healthz", PAIR_PATH}), {os.geteuid(): "owner"} if unix else {}
        )
        app = TokenRevocation(self._app(), self.accounts, self.audit)
        app = PairingExchange(app, self.accounts, self.audit, pairing_failures)
        failures = failures or FailureLimit(100_000)
        guard = TokenGuard(app, self.accounts, rules, self.audit, recheck, failures)
        self._sockets = [self._socket, *([listen_unix(unix)] if unix else [])]
        config = uvicorn.Config(
            guard,
            log_config=None,
            access_log=False,
            lifespan="off",
            http=HttpPeerProtocol,
            ws=WebSocketPeerProtocol,
            proxy_headers=False,
            ssl_certfile=tls[0] or None,
            ssl_keyfile=tls[1] or None,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        asyncio.run(self._server.serve(self._sockets))

    def close(self):
        self._server.should_exit = self._server.force_exit = True
        self._thread.join(10)
        assert not self._thread.is_alive()
        for listener in self._sockets:
            listener.close()
        self.database.close()

    def entries(self):
        return [json.loads(line) for line in self.audit_file.read_text().splitlines()]

    def request(self, method, path, token="", headers=(), body=None, host=""):
        """Return status, JSON body and headers. `headers` may repeat a name."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.putrequest(method, path, skip_host=True)
        connection.putheader("Host", host or f"127.0.0.1:{self.port}")
        if token:
            connection.putheader("Authorization", f"Bearer {token}")
        for name, value in headers:
            connection.putheader(name, value)
        data = json.dumps(body).encode() if body is not None else b""
        connection.putheader("Content-Length", str(len(data)))
        connection.endheaders(data)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer.status, json.loads(text) if text else None, answer.headers

    # -- the application -------------------------------------------------------------------------------------------

    def _app(self):
        names = {"methods": ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]}
        return Starlette(
            routes=[
                Route("/healthz", self._health),
                Route("/readyz", self._whoami),
                Route("/api/fail", self._fail),
                Route("/api/stream", self._stream),
                Route("/api/agent/sessions/{id}", self._session, **names),
                WebSocketRoute("/ws", self._echo),
                WebSocketRoute("/healthz", self._echo),
                Route("/{rest:path}", self._whoami, **names),
            ]
        )

    async def _health(self, request):
        return JSONResponse({"status": "ok", "user": getattr(request.state, "user", None)})

    async def _whoami(self, request):
        self.calls.append(request.url.path)
        return JSONResponse({"user": request.state.user}, headers={"Access-Control-Allow-Origin": "*"})

    async def _fail(self, request):
        raise RuntimeError("secret detail")

    async def _stream(self, request):
        async def parts():
            try:
                yield b'"started"'
                await asyncio.Event().wait()
            finally:
                self.stopped.set()

        return StreamingResponse(parts())

    async def _session(self, request):
        try:
            root, _ = await asyncio.to_thread(self.sessions.of(request.state.user).host, request.path_params["id"])
        except UsageError:
            return JSONResponse({"error": "session not found", "code": "not_found"}, 404)
        return JSONResponse({"root": root})

    async def _echo(self, websocket):
        self.calls.append("ws")
        await websocket.accept()
        try:
            await websocket.send_text(websocket.state.user)
            while True:
                text = await websocket.receive_text()
                if text == "fail":
                    raise RuntimeError("secret detail")
                await websocket.send_text(text)
        finally:
            self.stopped.set()
