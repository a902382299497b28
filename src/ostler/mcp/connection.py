"""The connection to a server, as the client uses it; over pipes or HTTP."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

import msgspec

from ostler.core.errors import BackendError
from ostler.mcp.server_entry import ServerEntry

MAX_CALL_SECONDS = 24 * 3600.0


class Progress(msgspec.Struct, frozen=True):
    """A progress notification of a running request."""

    progress: float = 0
    total: float | None = None
    message: str = ""


OnProgress = Callable[[Progress], None]
OnNotification = Callable[[str, Mapping[str, Any]], None]
OnRequest = Callable[[str, Mapping[str, Any]], Awaitable[Any]]


class ServerGone(BackendError):
    """The connection ended before the answer; whether the request had an effect is unknown."""

    code = "server_gone"


class ServerTimeout(BackendError):
    """The server did not answer in time; the request was cancelled."""

    code = "timeout"


class Challenge(msgspec.Struct, frozen=True):
    """What a remote server says when it refuses a request (`WWW-Authenticate`)."""

    resource_metadata: str = ""
    scope: str = ""
    error: str = ""


class LoginNeeded(BackendError):
    """A remote server refused a request because of a missing, wrong or insufficient login."""

    code = "needs_login"

    def __init__(self, message: str, challenge: Challenge, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.challenge = challenge


class Connection(Protocol):
    """A connection to a running server."""

    @property
    def closed(self) -> str:
        """Why the connection ended, or an empty string."""

    async def request(
        self, method: str, params: Mapping[str, Any], *, timeout: float | None, on_progress: OnProgress | None = None
    ) -> Any:
        """Send a request and return its result. Each progress notification restarts the timeout.

        Raises `RpcError` for an error response, `ServerTimeout`, or `ServerGone` if the connection ended.
        """

    async def notify(self, method: str, params: Mapping[str, Any]) -> None: ...

    async def aclose(self) -> None: ...


class ConnectionHandler:
    """What a connection does with messages from the server, and when the server ends by itself."""

    def __init__(self) -> None:
        self.on_notification: OnNotification = lambda method, params: None
        self.on_request: OnRequest | None = None
        self.on_end: Callable[[str], None] = lambda reason: None


Connect = Callable[[ConnectionHandler], Awaitable[Connection]]


def read_progress(params: Mapping[str, Any]) -> Progress:
    """Return the progress of a notification; values of a wrong type are ignored."""
    message = params.get("message")
    return Progress(
        _number(params.get("progress")) or 0.0,
        _number(params.get("total")),
        message[:500] if isinstance(message, str) else "",
    )


def _number(value: Any) -> float | None:
    """Return a number of a message, or None if it is not one or too large."""
    try:
        return float(value) if isinstance(value, int | float) else None
    except OverflowError:
        return None


class ResettableTimeout:
    """A time limit for the block with its `scope`, which can be restarted up to a maximum for the whole request."""

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self.scope = asyncio.timeout(seconds)
        self._end = asyncio.get_running_loop().time() + MAX_CALL_SECONDS

    def restart(self) -> None:
        if self._seconds is not None and not self.scope.expired():
            now = asyncio.get_running_loop().time()
            self.scope.reschedule(min(now + self._seconds, self._end))


def login_needed(entry: ServerEntry, challenge: Challenge) -> LoginNeeded:
    """Return the error for a refused request."""
    token = f"store a token with `ostler mcp token {entry.name}`"
    if entry.oauth:
        more = " with more permissions" if challenge.error == "insufficient_scope" else ""
        return LoginNeeded(f"needs login{more}: ostler mcp login {entry.name}", challenge, hint=f"or {token}")
    if entry.has_authorization:
        token = "check its Authorization header"
    elif entry.is_passed_in:
        token = "the program that passed it in must send its Authorization header"
    return LoginNeeded("the server refused the request (HTTP 401)", challenge, hint=token)
