"""HTTP requests to the connector of an Agent Zero server: capabilities, login with session cookies, and routes."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlencode

import msgspec

from ostler.backends.agent_zero.connector_socket import SOCKET_ROUTE, ConnectorSocket, open_connector_socket
from ostler.backends.agent_zero.local_calls import MAX_CALLS
from ostler.backends.agent_zero.server import ADDRESS_SETTING
from ostler.core.errors import BackendError
from ostler.http.client import HttpClient, HttpDocument
from ostler.http.dialer import Dialer
from ostler.http.proxy import proxy_for
from ostler.http.url import ServerOrigin, percent_encode
from ostler.http.websocket import HandshakeRefused
from ostler.text.lazy_regex import lazy_regex
from ostler.text.sanitise import sanitise
from ostler.wire.agent_zero.connector_events import Capabilities, read_capabilities
from ostler.wire.agent_zero.loose_values import parse_json
from ostler.wire.agent_zero.server_documents import error_text

ROUTES = "/api/plugins/_a0_connector/v1"
LOGIN_HINT = "store user and password of the server's web page with `ostler zero login --user NAME`"
NO_SOCKET = "no_websocket"  # code of the error if the server has the routes, but its socket cannot be reached
MAX_DOCUMENT_BYTES = 16 * 1024 * 1024
_SECONDS = 15.0
_ONCE = ("message_send", "chat_create", "nudge", "compact_chat")  # must not arrive twice
MAX_COOKIES = 50
MAX_CHARACTERS = 4096  # of one cookie, as in browsers
_COOKIE = lazy_regex(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+=[!-:<-~]*")


class ConnectorSettings(msgspec.Struct, frozen=True):
    """Settings of the connector. `timeout` limits a silence and `max_wait` a turn; 0 means no limit.

    `other_hosts` are machines besides `host` to which the user agreed.
    """

    host: str
    version: str = ""
    allow_shell: bool = False
    project: str = ""
    agent_profile: str = ""
    timeout: float = 0.0
    keepalive: float = 5.0
    max_wait: float = 0.0
    other_hosts: tuple[str, ...] = ()
    max_operations: int = MAX_CALLS  # of a turn
    retry_delays: tuple[float, ...] = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0)


class ConnectorLogin(msgspec.Struct, frozen=True):
    """User and password of the server's web page."""

    user: str
    password: str


class SessionCookies:
    """Cookies by name. All routes of one server get them, whatever path or domain they name."""

    def __init__(self) -> None:
        self._cookies: dict[str, str] = {}

    def __bool__(self) -> bool:
        return bool(self._cookies)

    @property
    def header(self) -> str:
        """The value of the `cookie` header."""
        return "; ".join(self._cookies.values())

    def clear(self) -> None:
        self._cookies.clear()

    def store(self, lines: str) -> None:
        """Store the `set-cookie` headers of a response, one per line; invalid ones are left out."""
        for line in lines.split("\n"):
            cookie, *attributes = (part.strip() for part in line.split(";"))
            name = cookie.partition("=")[0]
            if not _COOKIE.fullmatch(cookie) or len(cookie) > MAX_CHARACTERS:
                continue
            if _is_expired(attributes):
                self._cookies.pop(name, None)
            elif name in self._cookies or len(self._cookies) < MAX_COOKIES:
                self._cookies[name] = cookie


def _is_expired(attributes: list[str]) -> bool:
    values = {name.strip().lower(): value.strip() for name, _, value in (text.partition("=") for text in attributes)}
    if (seconds := values.get("max-age", "")).lstrip("-").isdecimal():
        return seconds.startswith("-") or not seconds.strip("0")
    try:
        expires = parsedate_to_datetime(values.get("expires", ""))
    except (ValueError, TypeError):
        return False
    return expires.replace(tzinfo=expires.tzinfo or UTC) <= datetime.now(UTC)


class ConnectorServer:
    """The connector of one server."""

    def __init__(
        self,
        origin: ServerOrigin,
        path: str,
        login: ConnectorLogin | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """`path` is the path of the server's web page, without a slash at the end."""
        self.origin = origin
        self._path = percent_encode(path)
        self._login = login
        self._cookies = SessionCookies()
        self._dialer = Dialer(origin, proxy=proxy_for(origin, environ or {}), setting=ADDRESS_SETTING)
        self._http = HttpClient(self._dialer)

    @property
    def address(self) -> str:
        return self.origin.address

    @property
    def has_login(self) -> bool:
        return self._login is not None

    async def capabilities(self) -> Capabilities | None:
        """Return what the connector needs; None if the server has none, or cannot be reached."""
        try:
            document = await self._fetch(f"{ROUTES}/capabilities", b"{}", "application/json")
        except BackendError:
            return None
        if document.status != 200:
            return None
        return read_capabilities(parse_json(document.body.decode("utf-8", "replace")))

    async def log_in(self) -> None:
        """Get session cookies. Raises `BackendError` if the server refuses the login."""
        if self._login is None:
            raise BackendError(f"Agent Zero at {self.address} needs a login", code="auth", hint=LOGIN_HINT)
        form = urlencode({"username": self._login.user, "password": self._login.password}).encode()
        self._cookies.clear()
        await self._fetch("/login", form, "application/x-www-form-urlencoded")
        if not self._cookies or _refuses(await self._fetch(f"{ROUTES}/chats_list", b"{}", "application/json")):
            raise BackendError(
                f"Agent Zero at {self.address} refused the login of {sanitise(self._login.user)[:100]}",
                code="auth",
                hint=f"user or password is wrong; {LOGIN_HINT}",
            )

    async def call(self, route: str, body: Mapping[str, Any], *, seconds: float = _SECONDS) -> dict[str, Any]:
        """Post to a route and return its answer; an ended web session is renewed. Raises `BackendError`."""
        data = msgspec.json.encode(body)
        document = await self._fetch(f"{ROUTES}/{route}", data, "application/json", seconds)
        if _refuses(document) and self._login is not None:
            await self.log_in()
            document = await self._fetch(f"{ROUTES}/{route}", data, "application/json", seconds)
        text = document.body.decode("utf-8", "replace")
        if _refuses(document):
            raise BackendError(f"Agent Zero at {self.address} needs a login", code="auth", hint=LOGIN_HINT)
        value = parse_json(text)
        if document.status != 200 or not isinstance(value, dict) or value.get("ok") is False:
            problem = sanitise(error_text(text)) or "no message"
            code = "not_found" if document.status == 404 else "http"
            raise BackendError(
                f"Agent Zero at {self.address} refused {route}: {problem} (HTTP {document.status})", code=code
            )
        return value

    async def open_socket(self, on_event: Callable[[str, Any], None]) -> ConnectorSocket:
        """Open the Socket.IO connection; an ended web session is renewed.

        Raises `BackendError`; its code is `NO_SOCKET` if the server or a proxy does not accept such a connection.
        """
        for may_log_in in (self._login is not None, False):
            try:
                return await open_connector_socket(self._dialer, self._path, self._headers(), on_event)
            except HandshakeRefused as error:
                if not may_log_in or error.status not in (401, 403):
                    raise BackendError(
                        f"{self.address} refused the WebSocket {self._path}{SOCKET_ROUTE} (HTTP {error.status})",
                        code=NO_SOCKET,
                        hint="a proxy in between must forward this path with the headers Host, Origin and Upgrade",
                    ) from None
            await self.log_in()
        raise AssertionError("unreachable")

    async def aclose(self) -> None:
        await self._http.aclose()

    async def _fetch(self, path: str, body: bytes, content_type: str, seconds: float = _SECONDS) -> HttpDocument:
        headers = [("content-type", content_type), ("accept", "application/json"), *self._headers()]
        repeatable = path.rpartition("/")[2] not in _ONCE
        document = await self._http.fetch(
            "POST",
            self._path + path,
            headers,
            body,
            timeout=seconds,
            limit=MAX_DOCUMENT_BYTES,
            repeatable=repeatable,
        )
        self._cookies.store(document.headers.get("set-cookie", ""))
        return document

    def _headers(self) -> list[tuple[str, str]]:
        page = f"{self.origin.scheme}://{self.address}"
        headers = [("origin", page), ("referer", f"{page}/")]
        return [*headers, ("cookie", self._cookies.header)] if self._cookies else headers


def _refuses(document: HttpDocument) -> bool:
    """Return whether a response asks for a login; no redirect is ever followed."""
    return document.status in (301, 302, 303, 307, 308, 401, 403)
