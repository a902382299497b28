"""HTTP requests to an Agent Zero server: routes, key, path fallback and error messages."""

from collections.abc import Mapping
from typing import Any

import msgspec

from ostler.core.errors import BackendError, UsageError
from ostler.http.client import HttpClient, HttpDocument, HttpResponse
from ostler.http.dialer import Dialer
from ostler.http.proxy import proxy_for
from ostler.http.url import ServerOrigin, match_url, origin_from_match, percent_encode, strip_secrets
from ostler.text.sanitise import sanitise
from ostler.wire.agent_zero.server_documents import error_text

MESSAGE_ROUTE = "api_message"
DEFAULT_PATH = "/api_message"
ADDRESS_SETTING = "AGENTZERO_API_URL or connection.api_url"
PREFIX = "/api"
MAX_ERROR_BYTES = 65_536
MAX_DOCUMENT_BYTES = 16 * 1024 * 1024
_KEY_HINT = "set AGENTZERO_API_KEY, run `ostler zero login`, or set connection.api_key in the config"
_PAGE_HINT = "A login page means that connection.api_url is not the address of the API, or that a proxy is in between"
_MISSING = (404, 405)
_REDIRECTS = (301, 302, 303, 307, 308)


class ZeroServer:
    """One server. `prefix` is the path before each route; it is corrected if the server has its routes elsewhere."""

    def __init__(
        self, origin: ServerOrigin, path: str, api_key: str = "", environ: Mapping[str, str] | None = None
    ) -> None:
        prefix, _, route = path.rpartition("/")
        self.origin = origin
        self.prefix = prefix
        self.has_routes = route == MESSAGE_ROUTE  # other paths are not of an Agent Zero server
        self._message_path = path
        self._api_key = api_key
        self._http = HttpClient(Dialer(origin, proxy=proxy_for(origin, environ or {}), setting=ADDRESS_SETTING))

    @property
    def address(self) -> str:
        """Host and port, for messages."""
        return self.origin.address

    async def send_message(self, body: Mapping[str, Any], accept: str) -> HttpResponse:
        """Post a message once and return the response, whose head has not been read yet."""
        path = f"{self.prefix}/{MESSAGE_ROUTE}" if self.has_routes else self._message_path
        data = msgspec.json.encode(body)
        return await self._http.send("POST", percent_encode(path), self._headers(accept), data, repeatable=False)

    def use_other_prefix(self) -> bool:
        """Switch between `/api_message` and `/api/api_message`. Return False if there is no other path."""
        if not self.has_routes:
            return False
        self.prefix = self.prefix.removesuffix(PREFIX) if self.prefix.endswith(PREFIX) else self.prefix + PREFIX
        return True

    async def call(self, route: str, body: Mapping[str, Any], *, timeout: float = 10.0) -> HttpDocument:
        """Post to another route, with the key. Raises `BackendError` if the server cannot be reached."""
        path = percent_encode(f"{self.prefix}/{route}")
        data = msgspec.json.encode(body)
        return await self._http.fetch(
            "POST", path, self._headers("application/json"), data, timeout=timeout, limit=MAX_DOCUMENT_BYTES
        )

    def error(self, status: int, body: bytes, headers: Mapping[str, str]) -> BackendError:
        """Return the error for a response with an error status."""
        text = sanitise(error_text(body.decode("utf-8", "replace"), headers.get("content-type", "")))
        if status in _REDIRECTS:
            target = sanitise(strip_secrets(headers.get("location", "")))[:200] or "another address"
            return BackendError(
                f"{self.address} redirects to {target} (HTTP {status})",
                code="redirect",
                hint=f"Ostler follows no redirect; if you trust the target, set connection.api_url to it. {_PAGE_HINT}",
            )
        if status in (401, 403):
            return BackendError(f"Agent Zero at {self.address} refused the key: {text}", code="auth", hint=_KEY_HINT)
        if status in _MISSING:
            hint = f"check connection.api_url; it ends with {DEFAULT_PATH} or {PREFIX}{DEFAULT_PATH}"
            return BackendError(
                f"{self.address} has no such route: {text} (HTTP {status})", code="not_found", hint=hint
            )
        return BackendError(f"Agent Zero at {self.address} failed: {text or 'no message'} (HTTP {status})", code="http")

    def page_error(self, page: str) -> BackendError:
        """Return the error for a web page in place of an answer."""
        title = sanitise(error_text(page, "text/html"))
        return BackendError(f"{self.address} answered with a web page: {title}", code="protocol", hint=_PAGE_HINT)

    async def aclose(self) -> None:
        await self._http.aclose()

    def _headers(self, accept: str) -> list[tuple[str, str]]:
        headers = [("content-type", "application/json"), ("accept", accept)]
        return [*headers, ("x-api-key", self._api_key)] if self._api_key else headers


def parse_server_url(url: str, path: str = DEFAULT_PATH) -> tuple[ServerOrigin, str]:
    """Return the server and the path of the message route; a URL without a path gets `path`. Raises `UsageError`."""
    match = match_url(url)
    if match is None or match["user"] or match["query"]:
        raise UsageError(
            f"connection.api_url is not a valid URL: {strip_secrets(url)[:200]}",
            hint="write it as http://host:port/api_message; the key belongs in AGENTZERO_API_KEY",
        )
    given = (match["path"] or "").rstrip("/")
    given = given if given not in ("", PREFIX) else given + "/" + path.strip("/")
    try:
        return origin_from_match(match), given
    except UsageError as error:
        raise UsageError(f"connection.api_url: {error.fault.message}", hint=error.fault.hint) from None
