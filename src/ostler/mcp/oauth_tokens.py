"""Requests for tokens at an authorization server: with a code, or with a refresh token."""

import base64
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import msgspec

from ostler.core.errors import BackendError
from ostler.mcp.oauth_documents import Documents, Headers
from ostler.mcp.oauth_logins import Login

MAX_TOKEN = 16_000


class Client(msgspec.Struct, frozen=True):
    """Ostler as an authorization server knows it."""

    client_id: str
    client_secret: str = ""
    auth_method: str = "none"


async def request_tokens(documents: Documents, login: Login, fields: Mapping[str, str]) -> Login:
    """Return the login with new tokens. The request names the server for which they are. Raises `BackendError`."""
    own, headers = authenticate(client_of(login))
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


def client_of(login: Login) -> Client:
    return Client(login.client_id, login.client_secret, login.auth_method)


def authenticate(client: Client) -> tuple[dict[str, str], Headers]:
    """Return the form fields and headers with which a client shows who it is. Some servers need the id in the form."""
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
