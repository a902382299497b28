"""Parses base URLs and origins as users write them."""

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
_VERSION = lazy_regex(r"/v\d+[a-z0-9]*(?=/|$)")
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


def parse_base_url(text: str, kind: Literal["openai", "anthropic"] = "openai") -> BaseUrl:
    """Parse a base URL. Slashes, `/v1`, the endpoint and the scheme may be missing or extra. Raises `UsageError`."""
    if any(c <= " " or c == "\x7f" for c in text.strip()):
        raise UsageError("the base URL contains spaces or control characters", hint="write it as http://host:port/v1")
    match = _URL.fullmatch(text.strip())
    if match is None:
        raise UsageError(
            f"invalid base URL {strip_secrets(text.strip())[:200]!r}", hint="write it as http://host:port/v1"
        )
    if match["user"]:
        raise UsageError("the base URL contains a user name or key", hint="set the key as the profile's apiKey")
    origin = _origin_from_match(match)
    path = _strip_endpoint(match["path"] or "", "/chat/completions" if kind == "openai" else "/messages")
    if (kind == "anthropic" and not _VERSION.search(path)) or not path:
        path += "/v1"
    return BaseUrl(origin, _percent_encode(path), _percent_encode(match["query"] or ""))


def strip_secrets(url: str) -> str:
    """Return the URL without user name, password and query."""
    return re.sub(r"//[^/\s]*@", "//", url).partition("?")[0]


def parse_origin(text: str) -> ServerOrigin:
    """Parse a URL to its server, ignoring the path. Raises `UsageError`."""
    match = _URL.fullmatch(text.strip())
    if match is None:
        raise UsageError(
            f"invalid server URL {strip_secrets(text.strip())[:200]!r}", hint="write it as http://host:port"
        )
    return _origin_from_match(match)


def _origin_from_match(match: re.Match[str]) -> ServerOrigin:
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


def _strip_endpoint(path: str, endpoint: str) -> str:
    path = re.sub(r"/+", "/", path).rstrip("/")
    return path.removesuffix(endpoint).rstrip("/")


def _percent_encode(text: str) -> str:
    """Percent-encode the characters that are not allowed in a request line."""
    return "".join(c if "!" <= c <= "~" else "".join(f"%{b:02X}" for b in c.encode()) for c in text)
