"""Lets only requests with a valid token, Host and Origin reach the server, also before a WebSocket is accepted."""

import asyncio
import ipaddress
import logging
import math
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import msgspec

from ostler.core.accounts import ALL_SCOPES, AccessScope, Accounts
from ostler.core.errors import OstlerError
from ostler.frontends.server.asgi_answer import AnswerInProgress, answer_error, client_address, header_values
from ostler.frontends.server.audit_log import AuditEntry, AuditLog
from ostler.frontends.server.failure_limit import FailureLimit
from ostler.frontends.server.unix_socket import PEER_UID
from ostler.wire.frames_shared import CloseCode

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

log = logging.getLogger("ostler.server")
HEALTH_PATH = "/healthz"
RECHECK_SECONDS = 5.0
END_SECONDS = 5.0  # how long an ended request may take to stop
STOP_SECONDS = 0.2  # how long the answer of a request may take that runs when the server stops
_BEARER = re.compile(r"bearer +(\S+)", re.IGNORECASE)
_TOKEN_NAMES = frozenset({"token", "access_token", "auth_token", "bearer", "authorization", "api_key", "apikey"})
_TOKEN = re.compile(r"ostler_[0-9a-f]{16}_")  # how the text of a token begins
_NO_TOKEN = "a valid token is required in the Authorization header"


class AccessRules(msgspec.Struct, frozen=True):
    """Exact values that are accepted. A request without `Origin` is not from a web page and is accepted.

    `peers` has the user of each uid that may connect over a Unix socket, where no token is needed.
    """

    hosts: frozenset[str]
    origins: frozenset[str] = frozenset()
    open_paths: frozenset[str] = frozenset({HEALTH_PATH})
    peers: Mapping[int, str] = {}


class Refusal(msgspec.Struct, frozen=True):
    """Why a request is refused."""

    status: int
    code: str
    text: str


class Caller(msgspec.Struct, frozen=True):
    """Who sends a request: a user with a token, or without one over a Unix socket. An open path has no user."""

    user: str = ""
    token: str = ""  # its id
    scopes: frozenset[AccessScope] = ALL_SCOPES


class TokenWatch:
    """Checks the tokens of all open requests together, every few seconds while there are any."""

    def __init__(self, accounts: Accounts, seconds: float) -> None:
        self._accounts = accounts
        self._seconds = seconds
        self._open: dict[str, set[asyncio.Future[int]]] = {}
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def watch(self, token_id: str) -> Iterator["asyncio.Future[int]"]:
        """Give a future with the close code, which is resolved when the token is no longer valid."""
        ended = asyncio.get_running_loop().create_future()
        self._open.setdefault(token_id, set()).add(ended)
        if self._task is None:
            self._task = asyncio.create_task(self._check_all(), name="check the tokens of open requests")
        try:
            yield ended
        finally:
            ended.cancel()
            requests = self._open[token_id]
            requests.discard(ended)
            if not requests:
                del self._open[token_id]
            if not self._open and self._task is not None:
                self._task.cancel()
                self._task = None

    async def _check_all(self) -> None:
        while True:
            await asyncio.sleep(self._seconds)
            token_ids, code = frozenset(self._open), int(CloseCode.UNAUTHENTICATED)
            try:
                valid = await asyncio.to_thread(self._accounts.valid, token_ids)
            except OstlerError as error:
                log.error("tokens cannot be checked, so all connections are closed: %s", error)
                valid, code = frozenset(), int(CloseCode.RESTART)  # clients may come back, and are checked then
            for token_id in token_ids - valid:
                for ended in self._open.get(token_id, ()):
                    if not ended.done():
                        ended.set_result(code)


class TokenGuard:
    """ASGI middleware. The application finds the user's name in `scope["state"]["user"]`, and beside it `token`, which
    is the id of the token, and `scopes`."""

    def __init__(
        self,
        app: "ASGIApp",
        accounts: Accounts,
        rules: AccessRules,
        audit: AuditLog,
        recheck: float = RECHECK_SECONDS,
        failures: FailureLimit | None = None,
    ) -> None:
        self._app = app
        self._accounts = accounts
        self._rules = rules
        self._audit = audit
        self._failures = failures or FailureLimit()
        self._watch = TokenWatch(accounts, recheck)

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        refusal, caller = _check_headers(scope, self._rules), Caller()
        is_open = scope["type"] == "http" and scope["path"] in self._rules.open_paths
        if refusal is None and not is_open:
            refusal, caller = await self._identify(scope)
        if refusal:
            await self._refuse(scope, send, refusal, caller)
            return
        state = scope.setdefault("state", {})
        state.pop("user", None)
        state["scopes"] = caller.scopes
        if caller.user:
            state["user"], state["token"] = caller.user, caller.token
        await self._serve(scope, receive, send, caller)

    async def _refuse(self, scope: "Scope", send: "Send", refusal: Refusal, caller: Caller) -> None:
        """Answer with an error. A client that fails too often must wait, and not every failure is logged."""
        failure = self._failures.add(client_address(scope))
        if failure.is_logged:
            reason = refusal.text if not failure.wait else "too many failures; not all are logged"
            fields: dict[str, str | int] = {"status": refusal.status, "reason": reason, "unlogged": failure.unlogged}
            self._audit.write(_entry(scope, caller, event="refused", **fields))
        headers = {"www-authenticate": "Bearer"} if refusal.status == 401 else {}
        if refusal.status == 401 and failure.wait:
            headers = {"retry-after": str(math.ceil(failure.wait))}
            refusal = Refusal(429, "rate_limited", "too many requests without a valid token")
        await answer_error(scope, send, refusal.status, refusal.code, refusal.text, headers)

    async def _identify(self, scope: "Scope") -> tuple[Refusal | None, Caller]:
        """Return who sends a request. A valid token is accepted also after failures of others at its address."""
        if _has_token_in_query(scope):
            text = "send the token in the Authorization header, not in the URL"
            return Refusal(401, "unauthenticated", text), Caller()
        if PEER_UID in scope:
            user = self._rules.peers.get(scope[PEER_UID], "")
            return (None if user else Refusal(403, "forbidden", "this user is not allowed")), Caller(user)
        values = header_values(scope, b"authorization")
        match = _BEARER.fullmatch(values[0]) if len(values) == 1 else None
        try:
            token = await asyncio.to_thread(self._accounts.authenticate, match[1] if match else "")
        except OstlerError as error:
            log.error("tokens cannot be checked: %s", error)
            return Refusal(503, "internal", "tokens cannot be checked at the moment"), Caller()
        if token is None:
            return Refusal(401, "unauthenticated", _NO_TOKEN), Caller()
        needed, caller = _needed_scope(scope), Caller(token.user, token.id, token.scopes)
        if needed not in token.scopes:
            return Refusal(403, "forbidden", f"the token does not have the scope {needed}"), caller
        return None, caller

    async def _serve(self, scope: "Scope", receive: "Receive", send: "Send", caller: Caller) -> None:
        start, answer = time.monotonic(), AnswerInProgress(scope, send)
        is_websocket = scope["type"] == "websocket"
        if is_websocket:
            self._audit.write(_entry(scope, caller, event="opened"))
        running = asyncio.ensure_future(_call(self._app, scope, receive, answer))
        try:
            if not caller.token:
                await running
            else:
                with self._watch.watch(caller.token) as ended:
                    waiting: list[asyncio.Future[Any]] = [running, ended]
                    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                    if not running.done():
                        await _end(running, answer, ended.result())
        except asyncio.CancelledError:  # uvicorn stops, and would print a traceback
            with suppress(Exception):
                async with asyncio.timeout(STOP_SECONDS):
                    await answer.end(CloseCode.RESTART, 503, "draining", "the server is shutting down")
        finally:
            if not running.done():
                running.cancel()
                await asyncio.wait([running], timeout=END_SECONDS)
            event, ms = "closed" if is_websocket else "request", int((time.monotonic() - start) * 1000)
            if caller.user:  # open paths keep their own record
                self._audit.write(_entry(scope, caller, event=event, status=answer.status, ms=ms))


async def _call(app: "ASGIApp", scope: "Scope", receive: "Receive", answer: AnswerInProgress) -> None:
    """Run the application. A bug is logged here, and the client learns only that there was one."""
    try:
        await app(scope, receive, answer.send)
    except Exception:
        log.exception("request failed: %s", scope["path"])
        await answer.end(1011, 500, "internal", "internal error")


async def _end(running: "asyncio.Future[None]", answer: AnswerInProgress, close_code: int) -> None:
    """End a request whose token is no longer valid, also if the client does not read."""
    is_revoked = close_code == CloseCode.UNAUTHENTICATED
    text = "the token was revoked or has expired" if is_revoked else "tokens cannot be checked at the moment"
    status, code = (401, "unauthenticated") if is_revoked else (503, "internal")
    try:
        await asyncio.wait_for(answer.end(close_code, status, code, text), END_SECONDS)
    except Exception as error:  # whatever the connection raises, the application must stop
        log.warning("a connection was not closed properly: %s", error)
    running.cancel()


def _check_headers(scope: "Scope", rules: AccessRules) -> Refusal | None:
    if scope["type"] not in ("http", "websocket"):
        return Refusal(403, "forbidden", "this kind of request is not supported")
    hosts, origins = header_values(scope, b"host"), header_values(scope, b"origin")
    if len(hosts) != 1 or not (PEER_UID in scope or hosts[0].lower() in rules.hosts or _is_address(scope, hosts[0])):
        return Refusal(403, "forbidden", "this Host is not allowed")
    if origins and (len(origins) != 1 or origins[0] not in rules.origins):
        return Refusal(403, "forbidden", "this Origin is not allowed")
    return None


def _is_address(scope: "Scope", host: str) -> bool:
    """Return whether `Host` is the address that the client connected to: a name that was rebound never is."""
    server = scope.get("server")
    if not server or not server[1]:
        return False
    try:
        address = ipaddress.ip_address(server[0])
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    written = f"[{address}]" if address.version == 6 and not mapped else str(mapped or address)
    return host == f"{written}:{server[1]}"


def _has_token_in_query(scope: "Scope") -> bool:
    query = scope.get("query_string", b"").decode("latin-1")
    if not query:
        return False
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=100)
    except ValueError:
        return True  # too many fields to check
    return any(name.lower().strip() in _TOKEN_NAMES or _TOKEN.search(name + value) for name, value in pairs)


def _needed_scope(scope: "Scope") -> AccessScope:
    """Return the scope that a request needs. A WebSocket can send messages, so it needs `write`."""
    return "read" if scope["type"] == "http" and scope["method"] in ("GET", "HEAD") else "write"


def _entry(scope: "Scope", caller: Caller, *, event: str, **fields: str | int) -> AuditEntry:
    known = {
        "event": event,
        "user": caller.user,
        "token": caller.token,
        "client": "unix" if PEER_UID in scope else client_address(scope),
        "method": "WS" if scope["type"] == "websocket" else str(scope.get("method", "")),
        "path": str(scope.get("path", "")),  # without the query, which may have a secret
    }
    return msgspec.convert({**known, **fields}, AuditEntry)
