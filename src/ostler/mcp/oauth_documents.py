"""Requests to authorization servers: small JSON documents over HTTPS, or over plain HTTP on this machine."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import msgspec

from ostler.core.errors import BackendError, UsageError
from ostler.http.client import HttpClient, HttpDocument
from ostler.http.dialer import Dialer
from ostler.http.proxy import proxy_for
from ostler.http.url import match_url, origin_from_match, parse_origin, request_target
from ostler.mcp.server_entry import ServerEntry
from ostler.text.sanitise import sanitise

MAX_DOCUMENT = 256 * 1024
TIMEOUT_SECONDS = 20.0
MAX_ERROR = 300
_FINAL_ERRORS = ("unauthorized_client", "unsupported_grant_type")  # besides those that start with `invalid_`

Headers = Sequence[tuple[str, str]]


class Documents:
    """Sends requests. `allow_plain` allows `http://` URLs of this machine, for a server that runs on it."""

    def __init__(self, environ: Mapping[str, str], *, allow_plain: bool) -> None:
        self._environ = environ
        self._allow_plain = allow_plain

    def check(self, url: str) -> str:
        """Return a URL that a server named. Raises `BackendError` unless it is safe to send secrets there."""
        parts = match_url(url) if url.isascii() and url.isprintable() and len(url) <= 2000 else None
        if parts is None or parts["user"] or not parts["scheme"]:
            raise BackendError(f"{sanitise(url)[:200]!r} is not a usable URL", code="oauth")
        origin = origin_from_match(parts)
        if origin.scheme != "https" and not (self._allow_plain and origin.is_loopback):
            raise BackendError(f"{origin.address} must use https for a login", code="oauth")
        return url

    async def get(self, url: str) -> Any | None:
        """Return a JSON object, or None if there is none at this URL. Raises `BackendError`."""
        found = await self._send("GET", url, [], b"")
        return _decode(url, found) if found.status == 200 else None

    async def post_form(self, url: str, fields: Mapping[str, str], headers: Headers = ()) -> Mapping[str, Any]:
        """Post a form and return the JSON object of the answer. Raises `BackendError`, with code `oauth_refused`."""
        content = ("content-type", "application/x-www-form-urlencoded")
        found = await self._send("POST", url, [content, *headers], urlencode(fields).encode())
        return _accepted(url, found)

    async def post_json(self, url: str, value: Mapping[str, Any]) -> Mapping[str, Any]:
        """Post a JSON object and return that of the answer. Raises `BackendError`, with code `oauth_refused`."""
        found = await self._send("POST", url, [("content-type", "application/json")], msgspec.json.encode(value))
        return _accepted(url, found)

    async def _send(self, method: str, url: str, headers: Headers, body: bytes) -> HttpDocument:
        parts = match_url(self.check(url))
        assert parts is not None
        origin = origin_from_match(parts)
        client = HttpClient(Dialer(origin, proxy=proxy_for(origin, self._environ), setting="the url of the MCP server"))
        headers = [("accept", "application/json"), *headers]
        try:
            target = request_target(parts)
            return await client.fetch(method, target, headers, body, timeout=TIMEOUT_SECONDS, limit=MAX_DOCUMENT)
        except UsageError as error:
            raise BackendError(error.fault.message, code="oauth") from None
        finally:
            await client.aclose()


def make_documents(entry: ServerEntry, environ: Mapping[str, str]) -> Documents:
    """Return what sends requests about the login at a server. Plain HTTP is for a server on this machine only."""
    return Documents(environ, allow_plain=parse_origin(entry.url).is_loopback)


def _accepted(url: str, found: HttpDocument) -> Mapping[str, Any]:
    if found.status not in (200, 201):
        code = "oauth_refused" if _is_final(found) else "oauth"
        raise BackendError(f"{_host(url)} refused the request: {_reason(found)}", code=code)
    return _decode(url, found)


def _is_final(found: HttpDocument) -> bool:
    """Return whether the authorization server itself refused, and not a proxy or an overloaded server."""
    value = _json(found.body)
    error = value.get("error") if isinstance(value, dict) and 400 <= found.status < 500 else None
    return isinstance(error, str) and (error.startswith("invalid_") or error in _FINAL_ERRORS)


def _decode(url: str, found: HttpDocument) -> Mapping[str, Any]:
    value = _json(found.body)
    if not isinstance(value, dict):
        raise BackendError(f"the answer of {_host(url)} is not a JSON object", code="oauth")
    return value


def _json(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return None


def _reason(found: HttpDocument) -> str:
    """Return what an error response says, on one line."""
    value = _json(found.body)
    texts = [value.get(key) for key in ("error", "error_description")] if isinstance(value, dict) else []
    text = ": ".join(text for text in texts if isinstance(text, str)) or f"HTTP {found.status}"
    return " ".join(sanitise(text).split())[:MAX_ERROR]


def _host(url: str) -> str:
    parts = match_url(url)
    return origin_from_match(parts).address if parts else "the server"
