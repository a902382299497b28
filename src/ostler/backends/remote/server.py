"""HTTP requests to an Ostler server: its address, its sessions, and the WebSocket of one of them."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec

from ostler.core.errors import BackendError, OstlerError, UsageError
from ostler.http.client import HttpClient, HttpDocument
from ostler.http.dialer import Dialer
from ostler.http.url import ServerOrigin, match_url, origin_from_match, percent_encode, strip_secrets
from ostler.text.sanitise import sanitise
from ostler.wire.event_codec import encode_json
from ostler.wire.frames import MAX_FRAME_BYTES
from ostler.wire.frames_shared import PROTOCOL_VERSION, Frame, SessionSnapshot

if TYPE_CHECKING:
    from ostler.backends.remote.event_channel import EventChannel
    from ostler.http.websocket import WebSocket

T = TypeVar("T")

SESSIONS = "/api/agent/sessions"
CAPABILITIES = "/api/agent/capabilities"
TOKEN_HINT = "log in again with `ostler login URL`"
_MAX_DOCUMENT = 4 * 1024 * 1024
_TIMEOUT = 10.0
_BLOCKED_CODES = ("protocol", "timeout", "disconnected", "proxy")
_SCHEMES = {"ws": "http", "wss": "https"}


class ServerAddress(msgspec.Struct, frozen=True):
    """Where a server is. `prefix` is the path before its routes; `session_id` the session that the URL names.

    `unix` is the Unix socket, if it is reached through one.
    """

    origin: ServerOrigin
    prefix: str = ""
    session_id: str = ""
    unix: str = ""

    @property
    def url(self) -> str:
        """The address of the server, without the session."""
        return self.unix or f"{self.origin.scheme}://{self.origin.authority}{self.prefix}"


class KnownCapabilities(Frame, frozen=True):
    """What a server says about itself. An older server has no such document."""

    server_version: str = ""
    protocol: tuple[int, ...] = (PROTOCOL_VERSION,)
    models: tuple[Any, ...] = ()
    session_tools: tuple[str, ...] = ()

    def model_names(self) -> tuple[str, ...]:
        return tuple(name for name in self.models if isinstance(name, str) and name)


class RemoteSession(Frame, frozen=True):
    """A session of the server."""

    session_id: str
    title: str = ""
    model: str = ""
    epoch: str = ""
    seq: int = 0
    workspace_root: str = ""
    updated_at: str = ""
    turns: int = 0
    activity: str = ""


class _SessionList(Frame, frozen=True):
    sessions: tuple[RemoteSession, ...] = ()


class _ErrorDocument(msgspec.Struct):
    error: str = ""
    code: str = ""


def _is_blocked(error: BackendError) -> bool:
    """Return whether something between here and the server, which answers otherwise, may not pass WebSockets on."""
    from ostler.http.websocket import HandshakeRefused

    if not isinstance(error, HandshakeRefused):
        return error.fault.code in _BLOCKED_CODES
    return not _read_error(error.body).code


def _read_error(body: bytes) -> _ErrorDocument:
    """Return what the server says about an error; an empty document if it is not of an Ostler server."""
    try:
        return msgspec.json.decode(body, type=_ErrorDocument)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _ErrorDocument()


def parse_server_url(text: str) -> ServerAddress:
    """Parse `https://HOST[/PREFIX][/api/agent/sessions/ID]`. Raises `UsageError`."""
    scheme, mark, rest = text.strip().partition("://")
    match = match_url(f"{_SCHEMES.get(scheme.lower(), scheme)}://{rest}" if mark else text)
    if match is None or match["user"] or match["query"]:
        raise UsageError(
            f"not the URL of a server: {strip_secrets(text)[:200]!r}", hint="write it as https://host:port"
        )
    origin = origin_from_match(match)
    prefix, _, session = (match["path"] or "").rstrip("/").partition(SESSIONS)
    session_id = session.strip("/").removesuffix("/stream")
    if "/" in session_id:
        raise UsageError(f"the URL names no session: {text[:200]!r}", hint=f"it ends with {SESSIONS}/ID")
    return ServerAddress(origin, prefix.rstrip("/"), session_id)


class RemoteServer:
    """The routes of one server that a tool host needs."""

    def __init__(self, address: ServerAddress, dialer: Dialer, headers: Sequence[tuple[str, str]] = ()) -> None:
        """`headers` are sent with every request; they authenticate the user."""
        self.address = address
        self._dialer = dialer
        self._http = HttpClient(dialer)
        self._headers = list(headers)
        self._transport: Literal["", "websocket", "sse"] = ""

    async def capabilities(self) -> KnownCapabilities:
        """Return what the server supports. Raises `BackendError` if it speaks no version of the protocol that we do."""
        document = await self._fetch("GET", CAPABILITIES)
        if document.status == 404:
            return KnownCapabilities()
        found = self._decode(document, KnownCapabilities)
        if PROTOCOL_VERSION not in found.protocol:
            spoken = ", ".join(map(str, found.protocol)) or "none"
            raise BackendError(
                f"{self.address.url} speaks version {spoken} of the protocol, this Ostler version {PROTOCOL_VERSION}",
                code="version",
                hint="update the older of the two",
            )
        return found

    async def create(self, root: str, model: str, version: str) -> RemoteSession:
        """Create a session. Raises `BackendError`."""
        body = {"workspaceRoot": root, "model": model, "clientVersion": version}
        return self._decode(await self._fetch("POST", SESSIONS, body), RemoteSession)

    async def sessions(self) -> Sequence[RemoteSession]:
        """Return the sessions of the user. Raises `BackendError`."""
        return self._decode(await self._fetch("GET", SESSIONS), _SessionList).sessions

    async def fork(self, session_id: str, seq: int) -> RemoteSession:
        """Copy a session up to a record. Raises `BackendError`."""
        return self._decode(await self._fetch("POST", f"{SESSIONS}/{session_id}/fork", {"seq": seq}), RemoteSession)

    async def messages(self, session_id: str) -> SessionSnapshot:
        """Return the conversation of a session. Raises `BackendError`."""
        return self._decode(await self._fetch("GET", f"{SESSIONS}/{session_id}/messages"), SessionSnapshot)

    async def open_stream(self, session_id: str) -> "WebSocket | EventChannel":
        """Open the WebSocket of a session, or its event stream if a proxy in between blocks WebSockets.

        What connected first is used from then on. Raises `HandshakeRefused` or `BackendError`.
        """
        from ostler.http.websocket import open_websocket

        path = percent_encode(f"{self.address.prefix}{SESSIONS}/{session_id}")
        if self._transport == "sse":
            return await self._open_events(path)
        try:
            opened = await open_websocket(self._dialer, f"{path}/stream", self._headers, max_message=MAX_FRAME_BYTES)
        except BackendError as error:
            if self._transport or not _is_blocked(error):
                raise
            try:
                events = await self._open_events(path)
            except OstlerError:
                raise error from None
            self._transport = "sse"
            return events
        self._transport = "websocket"
        return opened

    async def _open_events(self, path: str) -> "EventChannel":
        from ostler.backends.remote.event_channel import open_events

        return await open_events(self._dialer, f"{path}/stream", f"{path}/messages", self._headers)

    def refusal(self, status: int, body: bytes) -> BackendError:
        """Return the error for an HTTP status."""
        text = sanitise(_read_error(body).error)[:500]
        detail = f": {text}" if text else ""
        if status in (401, 403):
            return BackendError(f"{self.address.url} refused the token{detail}", code="auth", hint=TOKEN_HINT)
        if status == 404:
            hint = "check the URL; a session may have been deleted"
            return BackendError(f"{self.address.url} has no such session or route{detail}", code="not_found", hint=hint)
        return BackendError(f"{self.address.url} answered with HTTP {status}{detail}", code=f"http_{status}")

    async def aclose(self) -> None:
        await self._http.aclose()

    async def _fetch(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> HttpDocument:
        headers = [*self._headers, ("accept", "application/json")]
        data = b""
        if body is not None:
            data, headers = encode_json(body), [*headers, ("content-type", "application/json")]
        target = percent_encode(f"{self.address.prefix}{path}")
        return await self._http.fetch(method, target, headers, data, timeout=_TIMEOUT, limit=_MAX_DOCUMENT)

    def _decode(self, document: HttpDocument, kind: type[T]) -> T:
        if document.status >= 300:
            raise self.refusal(document.status, document.body)
        try:
            return msgspec.json.decode(document.body, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise BackendError(
                f"{self.address.url} is not an Ostler server", code="protocol", hint="check the URL and its port"
            ) from None
