"""The client with which Ostler logs in: the one of the settings, or one that the authorization server registers."""

from collections.abc import Mapping, Sequence
from typing import Any

from ostler.core.errors import BackendError, UsageError
from ostler.mcp.oauth_discovery import AuthorizationServer
from ostler.mcp.oauth_documents import Documents
from ostler.mcp.oauth_logins import Login
from ostler.mcp.oauth_tokens import Client
from ostler.mcp.server_entry import OAuthEntry

METHODS = ("none", "client_secret_basic", "client_secret_post")
MAX_ID = 2000


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
