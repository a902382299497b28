"""The client with which Ostler logs in, configured or registered by the authorization server, and its tokens."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import msgspec

from ostler.core.errors import BackendError, UsageError
from ostler.mcp.oauth_discovery import AuthorizationServer
from ostler.mcp.oauth_documents import Documents, Headers
from ostler.mcp.oauth_logins import Login
from ostler.mcp.server_entry import OAuthEntry

MAX_TOKEN = 16_000
METHODS = ("none", "client_secret_basic", "client_secret_post")
MAX_ID = 2000


class Client(msgspec.Struct, frozen=True):
    """Ostler as an authorization server knows it."""

    client_id: str
    client_secret: str = ""
    auth_method: str = "none"


async def request_tokens(documents: Documents, login: Login, fields: Mapping[str, str]) -> Login:
    """Return the login with new tokens. The request names the server for which they are. Raises `BackendError`."""
    own, headers = authenticate(login)
    answer = await documents.post_form(login.token_endpoint, {**fields, "resource": login.resource, **own}, headers)
    kind = answer.get("token_type", "bearer")
    if not isinstance(kind, str) or kind.lower() != "bearer":
        raise BackendError("the authorization server issued a token of an unknown type", code="oauth")
    access = _token(answer, "access_token")
    if not access:
        raise BackendError("the authorization server issued no usable token", code="oauth")
    refresh = _token(answer, "refresh_token") or login.refresh_token
    return msgspec.structs.replace(login, access_token=access, refresh_token=refresh)


async def refresh_tokens(documents: Documents, login: Login) -> Login:
    """Return the login with new tokens. Raises `BackendError`, with code `oauth_refused` if a new login is needed."""
    return await request_tokens(documents, login, {"grant_type": "refresh_token", "refresh_token": login.refresh_token})


def authenticate(client: Login) -> tuple[dict[str, str], Headers]:
    """Return the form fields and headers with which the client of a login shows who it is.

    Some servers need the id in the form.
    """
    own = {"client_id": client.client_id}
    if client.auth_method == "client_secret_basic" and client.client_secret:
        pair = f"{quote(client.client_id, safe='')}:{quote(client.client_secret, safe='')}"
        return own, [("authorization", f"Basic {base64.b64encode(pair.encode()).decode()}")]
    if client.auth_method == "client_secret_post":
        own["client_secret"] = client.client_secret
    return own, []


def _token(answer: Mapping[str, Any], name: str) -> str:
    """Return a token that can be sent in a header, or an empty string."""
    value = answer.get(name)
    if not isinstance(value, str) or len(value) > MAX_TOKEN:
        return ""
    return value if value.isascii() and value.isprintable() and " " not in value else ""


async def choose_client(
    documents: Documents,
    server: AuthorizationServer,
    settings: OAuthEntry,
    redirect_uri: str,
    earlier: Login | None,
) -> Client:
    """Return the client for an authorization server. `earlier` is the last login at the same MCP server.

    Raises `UsageError` if the user must register Ostler, or `BackendError`.
    """
    is_document = settings.client_id.startswith("https://")
    if settings.client_id and not (is_document and not server.client_id_metadata_document_supported):
        if not is_document and earlier and earlier.issuer != server.issuer:
            raise UsageError(
                f"the server now uses the authorization server {server.issuer} instead of {earlier.issuer}, for which "
                "the client id was configured",
                hint="check this with its operator; then log out, change the client id and log in",
            )
        return _configured(server, settings)
    if not server.registration_endpoint:
        raise UsageError(
            f"{server.issuer} does not register clients by itself",
            hint=f"register Ostler there with the redirect URI {redirect_uri}, then set oauth.client_id and "
            "oauth.redirect_port of the server",
        )
    return await _register(documents, server, redirect_uri)


def _configured(server: AuthorizationServer, settings: OAuthEntry) -> Client:
    if not settings.client_secret:
        return Client(settings.client_id)
    supported = server.token_endpoint_auth_methods_supported
    method = "client_secret_post" if "client_secret_basic" not in supported else "client_secret_basic"
    return Client(settings.client_id, settings.client_secret, method)


async def _register(documents: Documents, server: AuthorizationServer, redirect_uri: str) -> Client:
    request = {
        "client_name": "Ostler",
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "application_type": "native",
        "token_endpoint_auth_method": _method(server.token_endpoint_auth_methods_supported),
    }
    answer = await documents.post_json(documents.check(server.registration_endpoint), request)
    client_id, secret = _text(answer, "client_id"), _text(answer, "client_secret")
    if not client_id:
        raise BackendError(f"{server.issuer} did not register Ostler", code="oauth")
    method = answer.get("token_endpoint_auth_method", request["token_endpoint_auth_method"])
    if method not in METHODS:
        raise BackendError(f"{server.issuer} wants a way to authenticate that Ostler does not support", code="oauth")
    return Client(client_id, secret, method if secret else "none")


def _method(supported: Sequence[str]) -> str:
    """Return how to authenticate: without a secret, if the server allows that."""
    return next((method for method in METHODS if method in supported), METHODS[0])


def _text(answer: Mapping[str, Any], name: str) -> str:
    value = answer.get(name)
    return value if isinstance(value, str) and value.isprintable() and len(value) <= MAX_ID else ""
