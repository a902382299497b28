"""Finds out where to log in to a remote server: its own metadata (RFC 9728), then those of its authorization server."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ostler.core.errors import BackendError
from ostler.http.url import match_url, origin_from_match
from ostler.mcp.connection import Challenge
from ostler.mcp.oauth_documents import Documents
from ostler.text.sanitise import sanitise

RESOURCE_METADATA = "/.well-known/oauth-protected-resource"
SERVER_METADATA = ("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration")
MAX_SCOPES = 100
MAX_CHALLENGE = 8192  # characters
_BEARER = re.compile(r"(?:^|,)\s*bearer\s(.*)", re.IGNORECASE | re.DOTALL)
_PARAMETER = re.compile(r'(?<![A-Za-z_])([A-Za-z_]{1,40})\s{0,9}=\s{0,9}("(?:[^"\\]|\\.)*"|[^\s,"]+)')


class ProtectedResource(msgspec.Struct, frozen=True):
    """The server as its authorization server knows it."""

    resource: str
    issuer: str
    scopes: tuple[str, ...] = ()


class AuthorizationServer(msgspec.Struct, frozen=True):
    """The metadata of an authorization server, as far as they are used."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    registration_endpoint: str = ""
    revocation_endpoint: str = ""
    scopes_supported: tuple[str, ...] = ()
    code_challenge_methods_supported: tuple[str, ...] = ()
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)
    authorization_response_iss_parameter_supported: bool = False
    client_id_metadata_document_supported: bool = False


def read_challenge(header: str) -> Challenge:
    """Return the parameters of a `Bearer` challenge; an empty one if there is none."""
    found = _BEARER.search(header[:MAX_CHALLENGE])
    parameters: dict[str, str] = {}
    for name, value in _PARAMETER.findall(found[1] if found else ""):
        text = re.sub(r"\\(.)", r"\1", value[1:-1]) if value.startswith('"') else value
        parameters.setdefault(name.lower(), text)
    return Challenge(
        parameters.get("resource_metadata", ""),
        normal_scope(parameters.get("scope", "")),
        parameters.get("error", "")[:80],
    )


def normal_scope(*texts: str) -> str:
    """Return the scopes of all texts, each once."""
    words = [word for text in texts for word in text.split() if word.isascii() and word.isprintable()]
    return " ".join(list(dict.fromkeys(words))[:MAX_SCOPES])


def server_identity(url: str) -> str:
    """Return the URL that identifies a server: without query, and with scheme and host in lower case."""
    parts = match_url(url)
    if parts is None:
        raise BackendError("the URL of the server is not valid", code="oauth")
    origin = origin_from_match(parts)
    path = parts["path"] or ""
    return f"{origin.scheme}://{origin.authority}{path if path != '/' else ''}"


async def find_resource(documents: Documents, url: str, challenge: Challenge) -> ProtectedResource:
    """Return where to log in to the server with this URL. Raises `BackendError`."""
    root, path = _split(url)
    places = [f"{root}{RESOURCE_METADATA}{path}", f"{root}{RESOURCE_METADATA}"]
    if challenge.resource_metadata:
        if _split(challenge.resource_metadata)[0] != root:
            raise BackendError(f"the server's metadata are not at {root}", code="oauth")
        places = [challenge.resource_metadata]
    for place in dict.fromkeys(places):
        if found := await documents.get(place):
            return _read_resource(documents, url, found)
    return ProtectedResource(server_identity(url), root)  # as in protocol version 2025-03-26


def _read_resource(documents: Documents, url: str, found: Mapping[str, Any]) -> ProtectedResource:
    resource, servers = found.get("resource"), found.get("authorization_servers")
    if not isinstance(resource, str) or not _contains(resource, url):
        raise BackendError(f"its metadata are for another server, {sanitise(str(resource))[:200]}", code="oauth")
    issuers = [issuer for issuer in servers if isinstance(issuer, str)] if isinstance(servers, list) else []
    if not issuers:
        raise BackendError("its metadata name no authorization server", code="oauth")
    return ProtectedResource(resource, documents.check(issuers[0]), _texts(found.get("scopes_supported")))


def _contains(resource: str, url: str) -> bool:
    """Return whether a resource is the server with this URL, or a part of the host to which it belongs."""
    try:
        (root, path), (own_root, own_path) = _split(resource), _split(url)
    except BackendError:
        return False
    return root == own_root and f"{own_path.rstrip('/')}/".startswith(f"{path.rstrip('/')}/")


async def find_authorization_server(documents: Documents, issuer: str) -> AuthorizationServer:
    """Return the metadata of an authorization server. Raises `BackendError` if they cannot be used."""
    for place in _metadata_places(issuer):
        if found := await documents.get(place):
            return _check_server(documents, issuer, found)
    raise BackendError(f"{issuer} offers no login with OAuth", code="oauth", hint="check the server's URL")


def _metadata_places(issuer: str) -> Iterator[str]:
    root, path = _split(issuer)
    path = path.rstrip("/")
    for suffix in SERVER_METADATA:
        yield f"{root}{suffix}{path}"
    if path:
        yield f"{root}{path}{SERVER_METADATA[1]}"


def _check_server(documents: Documents, issuer: str, found: Mapping[str, Any]) -> AuthorizationServer:
    try:
        server = msgspec.convert({key: value for key, value in found.items() if value is not None}, AuthorizationServer)
    except msgspec.ValidationError:
        raise BackendError(f"the metadata of {issuer} are not valid", code="oauth") from None
    if server.issuer != issuer:
        raise BackendError(f"the metadata of {issuer} belong to another issuer", code="oauth")
    if "S256" not in server.code_challenge_methods_supported:
        raise BackendError(f"{issuer} does not support PKCE with S256, which Ostler needs", code="oauth")
    for endpoint in (server.authorization_endpoint, server.token_endpoint):
        documents.check(endpoint)
    return server


def _split(url: str) -> tuple[str, str]:
    """Return scheme and host of a URL, and its path. Raises `BackendError`."""
    parts = match_url(url)
    if parts is None or not parts["scheme"] or parts["user"]:
        raise BackendError(f"{sanitise(url)[:200]!r} is not a usable URL", code="oauth")
    origin = origin_from_match(parts)
    path = parts["path"] or ""
    return f"{origin.scheme}://{origin.authority}", "" if path == "/" else path


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(text for text in value if isinstance(text, str)) if isinstance(value, list) else ()
