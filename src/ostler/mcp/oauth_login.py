"""Logs in to a remote server: the user signs in with a browser, and Ostler stores the tokens."""

import asyncio
import base64
import hashlib
import secrets
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlencode

from ostler.core.errors import BackendError, UsageError
from ostler.mcp.client import McpClient
from ostler.mcp.connection import Challenge, ConnectionHandler, LoginNeeded
from ostler.mcp.http_connection import connect_http
from ostler.mcp.oauth_discovery import (
    AuthorizationServer,
    ProtectedResource,
    find_authorization_server,
    find_resource,
    normal_scope,
    server_identity,
)
from ostler.mcp.oauth_documents import make_documents
from ostler.mcp.oauth_logins import Login, Logins, locked_login
from ostler.mcp.oauth_redirect import Expected, RedirectListener, listening, read_code, read_pasted
from ostler.mcp.oauth_tokens import authenticate, choose_client, request_tokens
from ostler.mcp.server_entry import OAuthEntry, ServerEntry
from ostler.wire.jsonrpc import RpcError

LOGIN_SECONDS = 600.0

# Shows the address that the user must open, with the issuer that asks for the login.
ShowAddress = Callable[[str, str], None]
# Returns a line that the user pasted. Its argument is why the last one could not be used.
ReadPasted = Callable[[str], Awaitable[str]]


async def find_challenge(entry: ServerEntry, environ: Mapping[str, str], version: str) -> Challenge:
    """Connect without a login, to learn what the server asks for. Raises `OstlerError` if it cannot be reached."""
    handler = ConnectionHandler()
    client = McpClient(await connect_http(entry, handler, environ), handler, version, interactive=False)
    try:
        if "tools" in (await client.start(entry.start_timeout)).capabilities:
            await client.list_tools(entry.start_timeout)
    except LoginNeeded as error:
        return error.challenge
    except RpcError:
        return Challenge()
    finally:
        await client.aclose()
    return Challenge()


class LoginFlow:
    """One login. `show` and `read_pasted` connect it to the user."""

    def __init__(
        self,
        entry: ServerEntry,
        logins: Logins,
        lock_folder: Path,
        environ: Mapping[str, str],
        show: ShowAddress,
        read_pasted: ReadPasted | None = None,
    ) -> None:
        self._entry = entry
        self._settings = entry.oauth or OAuthEntry()
        self._logins = logins
        self._lock_folder = lock_folder
        self._documents = make_documents(entry, environ)
        self._show = show
        self._read_pasted = read_pasted

    async def run(self, challenge: Challenge) -> Login:
        """Log in and store the tokens. Raises `OstlerError`."""
        url, identity = self._documents.check(self._entry.url), server_identity(self._entry.url)
        resource = await find_resource(self._documents, url, challenge)
        server = await find_authorization_server(self._documents, resource.issuer)
        earlier = await asyncio.to_thread(self._logins.get, identity)
        scope = self._scope(challenge, resource, server, earlier)
        login = await self._sign_in(server, resource, scope, earlier)
        async with locked_login(self._lock_folder, identity):  # otherwise a refresh could replace it
            await asyncio.to_thread(self._logins.set, identity, login)
        return login

    async def _sign_in(
        self, server: AuthorizationServer, resource: ProtectedResource, scope: str, earlier: Login | None
    ) -> Login:
        verifier = secrets.token_urlsafe(48)
        has_issuer = server.authorization_response_iss_parameter_supported
        expected = Expected(secrets.token_urlsafe(24), server.issuer, has_issuer)
        async with listening(expected, self._settings.redirect_port) as listener:
            client = await choose_client(self._documents, server, self._settings, listener.uri, earlier)
            login = Login(
                server.issuer,
                resource.resource,
                client.client_id,
                server.token_endpoint,
                "",
                "",
                client.client_secret,
                client.auth_method,
                server.revocation_endpoint,
                scope,
            )
            self._show(_address(server, login, listener.uri, expected.state, verifier), server.issuer)
            code = read_code(await self._answer(listener, expected), expected)
        fields = {"grant_type": "authorization_code", "code": code, "redirect_uri": listener.uri}
        return await request_tokens(self._documents, login, {**fields, "code_verifier": verifier})

    def _scope(
        self, challenge: Challenge, resource: ProtectedResource, server: AuthorizationServer, earlier: Login | None
    ) -> str:
        """Return what to ask for: the settings, what was missing, what the server says now, or what it supports."""
        scope = self._settings.scope or challenge.scope or normal_scope(*resource.scopes)
        if earlier and earlier.missing_scope:
            scope = normal_scope(earlier.scope, scope, earlier.missing_scope)
        wants_refresh = scope and "offline_access" in server.scopes_supported
        return normal_scope(scope, "offline_access") if wants_refresh else normal_scope(scope)

    async def _answer(self, listener: RedirectListener, expected: Expected) -> Mapping[str, str]:
        """Return the first answer, from the browser or pasted."""
        waiting = [asyncio.ensure_future(listener.answer())]
        if self._read_pasted:
            waiting.append(asyncio.ensure_future(self._pasted_answer(self._read_pasted, expected)))
        try:
            done, _ = await asyncio.wait(waiting, timeout=LOGIN_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()
            await asyncio.wait(waiting)
        if not done:
            raise BackendError(f"nobody logged in within {LOGIN_SECONDS / 60:g} minutes", code="timeout")
        return done.pop().result()

    async def _pasted_answer(self, read: ReadPasted, expected: Expected) -> dict[str, str]:
        problem = ""
        while True:
            text = await read(problem)
            try:
                return read_pasted(text, expected)
            except UsageError as error:
                problem = str(error)


def _address(server: AuthorizationServer, login: Login, redirect_uri: str, state: str, verifier: str) -> str:
    """Return the address at which the user signs in."""
    digest = hashlib.sha256(verifier.encode()).digest()
    parameters = {
        "response_type": "code",
        "client_id": login.client_id,
        "redirect_uri": redirect_uri,
        "state": state,
        "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
        "code_challenge_method": "S256",
        "resource": login.resource,
    }
    if login.scope:
        parameters["scope"] = login.scope
    separator = "&" if "?" in server.authorization_endpoint else "?"
    return f"{server.authorization_endpoint}{separator}{urlencode(parameters)}"


async def log_out(entry: ServerEntry, logins: Logins, lock_folder: Path, environ: Mapping[str, str]) -> bool:
    """Revoke the tokens if the authorization server supports it, and delete them. Return whether there were any."""
    identity = server_identity(entry.url)
    async with locked_login(lock_folder, identity):
        login = await asyncio.to_thread(logins.get, identity)
        found = await asyncio.to_thread(logins.delete, identity)
    if login and login.revocation_endpoint:
        own, headers = authenticate(login)
        fields = {"token": login.refresh_token or login.access_token, **own}
        with suppress(BackendError):  # the tokens are deleted here in any case
            await make_documents(entry, environ).post_form(login.revocation_endpoint, fields, headers)
    return found
