"""URLs of servers: the parts of a URL as users write it, its origin, and the root of an API."""

import re
from typing import Literal

import msgspec

from ostler.core.errors import UsageError
from ostler.text.lazy_regex import lazy_regex

_URL = lazy_regex(
    r"(?:(?P<scheme>[a-z][a-z0-9+.-]*)://)?(?P<user>[^/?#]*@)?(?P<host>\[[0-9a-f:.]+\]|[^/?#\[\]:@]+)(?::(?P<port>\d{1,5}))?"
    r"(?P<path>/[^?#]*)?(?:\?(?P<query>[^#]*))?(?:#.*)?",
    re.IGNORECASE,
)
_LOOPBACK = lazy_regex(r"localhost|.*\.localhost|127(?:\.\d{1,3}){3}|::1")


class ServerOrigin(msgspec.Struct, frozen=True):
    """Scheme, host and port of a server. An IPv6 host is stored without brackets."""

    scheme: Literal["http", "https"]
    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether the host is a loopback name or address."""
        return _LOOPBACK.fullmatch(self.host) is not None

    @property
    def address(self) -> str:
        """Host and port, for messages."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def authority(self) -> str:
        """Value of the Host header, without the scheme's default port."""
        default_port = 443 if self.scheme == "https" else 80
        return self.address.removesuffix(f":{default_port}") if self.port == default_port else self.address


class BaseUrl(msgspec.Struct, frozen=True):
    """Root of an API: the server, the path before each endpoint, and a query added to every request."""

    origin: ServerOrigin
    path: str
    query: str = ""

    def endpoint(self, name: str) -> str:
        """Return the request target of an endpoint such as `chat/completions`."""
        return f"{self.path}/{name}" + (f"?{self.query}" if self.query else "")

    def __str__(self) -> str:
        return f"{self.origin.scheme}://{self.origin.authority}{self.path}"


def match_url(text: str) -> re.Match[str] | None:
    """Return the parts of a URL: `scheme`, `user`, `host`, `port`, `path` and `query`; None if it is not a URL."""
    return _URL.fullmatch(text.strip())


def strip_secrets(url: str) -> str:
    """Return the URL without user name, password and query."""
    return re.sub(r"//[^/\s]*@", "//", url).partition("?")[0]


def parse_origin(text: str) -> ServerOrigin:
    """Parse a URL to its server, ignoring the path. Raises `UsageError`."""
    match = match_url(text)
    if match is None:
        raise UsageError(
            f"invalid server URL {strip_secrets(text.strip())[:200]!r}", hint="write it as http://host:port"
        )
    return origin_from_match(match)


def origin_from_match(match: re.Match[str]) -> ServerOrigin:
    """Return the server of a matched URL; `http` is the default for local names. Raises `UsageError`."""
    host = _normalize_host(match["host"])
    scheme = (match["scheme"] or _guess_scheme(host)).lower()
    if scheme not in ("http", "https"):
        raise UsageError(f"unsupported URL scheme {scheme[:20]}://", hint="use http:// or https://")
    secure = scheme == "https"
    port = int(match["port"] or (443 if secure else 80))
    if not 0 < port < 65536:
        raise UsageError(f"invalid port {port} in the URL", hint="use a port between 1 and 65535")
    return ServerOrigin("https" if secure else "http", host, port)


def _normalize_host(text: str) -> str:
    host = text.strip("[]").lower()
    if host.isascii():
        return host
    try:
        return host.encode("idna").decode()
    except UnicodeError:
        raise UsageError(f"invalid host name {text[:100]!r} in the URL", hint="check the spelling") from None


def _guess_scheme(host: str) -> str:
    """Return `http` for local names such as `localhost` or `gpu-box`, `https` for public ones."""
    local = _LOOPBACK.fullmatch(host) or "." not in host or re.fullmatch(r"[\d.]+|.*\.(?:local|lan|internal)", host)
    return "http" if local else "https"


def request_target(match: re.Match[str]) -> str:
    """Return path and query of a matched URL for a request line."""
    query = f"?{percent_encode(match['query'])}" if match["query"] else ""
    return percent_encode(match["path"] or "/") + query


def percent_encode(text: str) -> str:
    """Percent-encode the characters that are not allowed in a request line."""
    return "".join(c if "!" <= c <= "~" else "".join(f"%{b:02X}" for b in c.encode()) for c in text)


def server_url(origin: ServerOrigin) -> str:
    """Return the URL under which a server's login is stored."""
    return f"{origin.scheme}://{origin.address}"


def parse_server(text: str) -> ServerOrigin:
    """Return the server of a URL without path, user and query. Raises `UsageError`."""
    match = match_url(text)
    if match is None or match["user"] or match["query"] is not None or (match["path"] or "/") != "/":
        raise UsageError("the server's URL must be written as https://host:port", hint="it has no path and no token")
    return origin_from_match(match)
