"""Checks token, Origin and Host of every request, also before a WebSocket is accepted."""

import json
from collections.abc import Awaitable, Callable, Collection
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

OPEN_PATHS = frozenset({"/healthz"})


class RequestCredentials(msgspec.Struct, frozen=True):
    """What a request says about who sent it."""

    authorization: str
    path: str
    client: str = ""


class AuthenticatedUser(msgspec.Struct, frozen=True):
    """Who sent a request."""

    name: str


Authenticate = Callable[[RequestCredentials], Awaitable[AuthenticatedUser | None]]


class Guard:
    """ASGI middleware. `open_paths` need no token; Host and Origin are checked for them too."""

    def __init__(
        self,
        app: "ASGIApp",
        authenticate: Authenticate,
        hosts: Collection[str],
        origins: Collection[str] = (),
        open_paths: Collection[str] = OPEN_PATHS,
    ) -> None:
        """`hosts` and `origins` are exact values; with `*` in `hosts` every host is accepted (a Unix socket)."""
        self._app = app
        self._authenticate = authenticate
        self._hosts = frozenset(hosts)
        self._origins = frozenset(origins)
        self._open_paths = frozenset(open_paths)

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        status, text = self._check_headers(scope)
        if not status and scope["path"] not in self._open_paths:
            user = await self._authenticate(credentials_of(scope))
            if user is None:
                status, text = 401, "a valid token is required in the Authorization header"
            else:
                scope.setdefault("state", {})["user"] = user.name
        if status:
            await refuse(scope, send, status, text)
        else:
            await self._app(scope, receive, send)

    def _check_headers(self, scope: "Scope") -> tuple[int, str]:
        hosts, origins = _values(scope, b"host"), _values(scope, b"origin")
        if "*" not in self._hosts and (len(hosts) != 1 or hosts[0].lower() not in self._hosts):
            return 403, "this Host is not allowed"
        if origins and (len(origins) != 1 or origins[0] not in self._origins):
            return 403, "this Origin is not allowed"
        return 0, ""


def credentials_of(scope: "Scope") -> RequestCredentials:
    """Return the credentials of a request; two Authorization headers count as none."""
    values = _values(scope, b"authorization")
    client = scope.get("client") or ("",)
    return RequestCredentials(values[0] if len(values) == 1 else "", scope["path"], str(client[0]))


async def refuse(scope: "Scope", send: "Send", status: int, text: str) -> None:
    """Answer a request with an error; a WebSocket is answered instead of accepted."""
    code = {401: "unauthenticated", 403: "forbidden", 404: "not_found"}.get(status, "internal")
    body = json.dumps({"error": text, "code": code}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    prefix = ""
    if scope["type"] == "websocket":
        if "websocket.http.response" not in scope.get("extensions", {}):
            await send({"type": "websocket.close", "code": 1008})
            return
        prefix = "websocket."
    start: dict[str, Any] = {"type": f"{prefix}http.response.start", "status": status, "headers": headers}
    await send(start)
    await send({"type": f"{prefix}http.response.body", "body": body})


def _values(scope: "Scope", name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]
