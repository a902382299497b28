"""Selects the proxy for a server from the usual environment variables."""

import re
from base64 import b64encode
from collections.abc import Mapping

import msgspec

from ostler.core.errors import BackendError, UsageError
from ostler.http.url import ServerOrigin, parse_origin


class Proxy(msgspec.Struct, frozen=True):
    """A proxy server. `credentials` is the value of its authorization header."""

    origin: ServerOrigin
    credentials: str = ""


def proxy_for(origin: ServerOrigin, environ: Mapping[str, str]) -> Proxy | None:
    """Return the proxy for a server, or None for loopback addresses and servers in NO_PROXY."""
    url = _read_variable(environ, f"{origin.scheme}_proxy") or _read_variable(environ, "all_proxy")
    if not url or origin.is_loopback or _is_excluded(origin, _read_variable(environ, "no_proxy")):
        return None
    return parse_proxy(url)


def parse_proxy(url: str, setting: str = "HTTPS_PROXY") -> Proxy:
    """Parse a proxy URL, which may contain user name and password. `setting` names its source in error messages."""
    hint = f"write {setting} as http://host:port"
    scheme, _, rest = url.strip().rpartition("://")
    credentials, _, server = rest.rpartition("@")
    if scheme.lower() not in ("", "http"):
        raise BackendError(f"unsupported proxy scheme {scheme[:20]}://", code="proxy", hint=hint)
    try:
        origin = parse_origin(f"http://{server}")
    except UsageError:
        raise BackendError("invalid proxy URL", code="proxy", hint=hint) from None
    return Proxy(origin, _basic_auth(credentials) if credentials else "")


def _basic_auth(credentials: str) -> str:
    from urllib.parse import unquote  # only needed for proxies with a password

    return "Basic " + b64encode(unquote(credentials).encode()).decode()


def _read_variable(environ: Mapping[str, str], name: str) -> str:
    """Return a variable, preferring lower case. HTTP_PROXY is ignored in CGI scripts, where it is a request header."""
    if name in environ:
        return environ[name]
    if name == "http_proxy" and "REQUEST_METHOD" in environ:
        return ""
    return environ.get(name.upper(), "")


def _is_excluded(origin: ServerOrigin, no_proxy: str) -> bool:
    return any(_covers(entry, origin) for entry in re.split(r"[,\s]+", no_proxy.lower()) if entry)


def _covers(entry: str, origin: ServerOrigin) -> bool:
    """Whether a NO_PROXY entry covers the server: `*`, a domain with its subdomains, an address or a network."""
    if entry == "*":
        return True
    if "/" in entry:
        return _in_network(origin.host, entry)
    name, port = _split_port(entry)
    if port and port != str(origin.port):
        return False
    name = name.strip("[]").removeprefix("*").lstrip(".")
    return bool(name) and (origin.host == name or origin.host.endswith("." + name))


def _split_port(entry: str) -> tuple[str, str]:
    match = re.fullmatch(r"(\[[^\]]*\]|[^:]*):(\d+)", entry)
    return (match[1], match[2]) if match else (entry, "")


def _in_network(host: str, network: str) -> bool:
    import ipaddress  # only needed for networks in NO_PROXY

    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False
