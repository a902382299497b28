"""Base URLs as people write them: which server, which path, or a sentence about what is wrong."""

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
    """One server, as a connection needs it; an IPv6 host has no brackets here."""

    scheme: Literal["http", "https"]
    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether it is this machine by name or address."""
        return _LOOPBACK.fullmatch(self.host) is not None

    @property
    def address(self) -> str:
        """Host and port, as sentences name them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def authority(self) -> str:
        """What the Host header says: the port only where it is not the scheme's own."""
        usual = 443 if self.scheme == "https" else 80
        return self.address.removesuffix(f":{usual}") if self.port == usual else self.address


class BaseUrl(msgspec.Struct, frozen=True):
    """An API's root: the server, the path before each endpoint, and a query that every request repeats."""

    origin: ServerOrigin
    path: str
    query: str = ""

    def endpoint(self, name: str) -> str:
        """The request target of one endpoint, such as `chat/completions`."""
        return f"{self.path}/{name}" + (f"?{self.query}" if self.query else "")

    def __str__(self) -> str:
        return f"{self.origin.scheme}://{self.origin.authority}{self.path}"


def parse_base_url(text: str, kind: Literal["openai", "anthropic"] = "openai") -> BaseUrl:
    """Read a base URL, forgiving what people add or leave out: slashes, `/v1`, the endpoint itself, the scheme."""
    if any(c <= " " or c == "\x7f" for c in text.strip()):
        raise UsageError("the base URL has blanks or control characters in it", hint="write it as http://host:port/v1")
    match = _URL.fullmatch(text.strip())
    if match is None:
        raise UsageError(
            f"the base URL {strip_secrets(text.strip())[:200]!r} is not one", hint="write it as http://host:port/v1"
        )
    if match["user"]:
        raise UsageError("the base URL has a name or a key in it", hint="give the key as the profile's apiKey")
    origin = _origin_from_match(match)
    path = _strip_endpoint(match["path"] or "", "/chat/completions" if kind == "openai" else "/messages")
    if (kind == "anthropic" and not _VERSION.search(path)) or not path:
        path += "/v1"
    return BaseUrl(origin, _percent_encode(path), _percent_encode(match["query"] or ""))


def strip_secrets(url: str) -> str:
    """A URL as it may be shown: without a name, a password or a query."""
    return re.sub(r"//[^/\s]*@", "//", url).partition("?")[0]


def parse_origin(text: str) -> ServerOrigin:
    """Read the server part of a URL alone, such as a proxy's."""
    match = _URL.fullmatch(text.strip())
    if match is None:
        raise UsageError(
            f"{strip_secrets(text.strip())[:200]!r} is not the URL of a server", hint="write it as http://host:port"
        )
    return _origin_from_match(match)


def _origin_from_match(match: re.Match[str]) -> ServerOrigin:
    host = _normalize_host(match["host"])
    scheme = (match["scheme"] or _guess_scheme(host)).lower()
    if scheme not in ("http", "https"):
        raise UsageError(f"a URL with {scheme[:20]}:// cannot be used here", hint="write http:// or https://")
    secure = scheme == "https"
    port = int(match["port"] or (443 if secure else 80))
    if not 0 < port < 65536:
        raise UsageError(f"the port {port} in the URL does not exist", hint="use one between 1 and 65535")
    return ServerOrigin("https" if secure else "http", host, port)


def _normalize_host(text: str) -> str:
    host = text.strip("[]").lower()
    if host.isascii():
        return host
    try:
        return host.encode("idna").decode()
    except UnicodeError:
        raise UsageError(f"the host {text[:100]!r} in the URL is not a name", hint="check how it is spelt") from None


def _guess_scheme(host: str) -> str:
    """A bare `localhost:8000` or `gpu-box:8000` means plain HTTP; a public name means TLS."""
    local = _LOOPBACK.fullmatch(host) or "." not in host or re.fullmatch(r"[\d.]+|.*\.(?:local|lan|internal)", host)
    return "http" if local else "https"


def _strip_endpoint(path: str, endpoint: str) -> str:
    path = re.sub(r"/+", "/", path).rstrip("/")
    return path.removesuffix(endpoint).rstrip("/")


def _percent_encode(text: str) -> str:
    """Percent-encode what may not stand in a request line."""
    return "".join(c if "!" <= c <= "~" else "".join(f"%{b:02X}" for b in c.encode()) for c in text)
