"""The Authorization header for a remote server: a stored token, or that of a login, which is renewed when refused."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ostler.core.credentials import CredentialName, CredentialStore
from ostler.core.errors import BackendError
from ostler.http.url import parse_origin
from ostler.mcp.connection import Challenge, login_needed
from ostler.mcp.oauth_discovery import normal_scope, server_identity
from ostler.mcp.oauth_documents import make_documents
from ostler.mcp.oauth_logins import Login, Logins, locked_login
from ostler.mcp.oauth_tokens import refresh_tokens
from ostler.mcp.server_entry import ServerEntry

T = TypeVar("T")


class RemoteAccess:
    """The access to one server. What is stored is read once, and again when the server refuses a request."""

    def __init__(
        self,
        entry: ServerEntry,
        open_credentials: Callable[[], CredentialStore],
        environ: Mapping[str, str],
        lock_folder: Path,
    ) -> None:
        self._entry = entry
        self._open_credentials = open_credentials
        self._environ = environ
        self._identity = server_identity(entry.url)
        self._lock_folder = lock_folder
        self._header: str | None = None

    async def header(self) -> str:
        """Return the Authorization header; an empty text if nothing is stored."""
        if self._header is None:
            self._header = (await asyncio.to_thread(self._read))[0]
        return self._header

    def _read(self) -> tuple[str, Login | None]:
        """Return the header, and the login that it is of. The login is used first: the token is for the whole host."""
        store = self._open_credentials()
        if self._entry.oauth and (login := Logins(store).get(self._identity)):
            return f"Bearer {login.access_token}", login
        token = store.get(token_name(self._entry))
        return f"Bearer {token}" if token else "", None

    async def renew(self, refused: str, challenge: Challenge) -> None:
        """Get another header than the refused one. Raises `LoginNeeded`, or `BackendError` if that fails.

        Only one process at a time does this: a refresh token is often valid once.
        """
        async with locked_login(self._lock_folder, self._identity):
            header, login = await asyncio.to_thread(self._read)
            if header == refused:
                header = f"Bearer {(await self._renewed(login, challenge)).access_token}"
            self._header = header

    async def _renewed(self, login: Login | None, challenge: Challenge) -> Login:
        if login is None:
            raise login_needed(self._entry, challenge)
        if challenge.error == "insufficient_scope":
            missing = normal_scope(login.missing_scope, challenge.scope)
            await self._store(msgspec.structs.replace(login, missing_scope=missing))
            raise login_needed(self._entry, challenge)
        if not login.refresh_token:
            raise login_needed(self._entry, challenge)
        renewed = await _uninterrupted(self._refresh(login))
        if renewed is None:
            raise login_needed(self._entry, challenge)
        return renewed

    async def _refresh(self, login: Login) -> Login | None:
        """Refresh the tokens and store them; None if the authorization server refuses. Raises `BackendError`."""
        try:
            renewed = await refresh_tokens(make_documents(self._entry, self._environ), login)
        except BackendError as error:
            if error.fault.code != "oauth_refused":
                raise
            await self._store(msgspec.structs.replace(login, refresh_token=""))
            return None
        await self._store(renewed)
        return renewed

    async def _store(self, login: Login) -> None:
        logins = Logins(self._open_credentials())
        await asyncio.to_thread(logins.set, self._identity, login)


async def _uninterrupted(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end even if cancelled: the old refresh token is useless once a new one was issued."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled:
        task.exception()
        raise cancelled
    return task.result()


def describe_access(entry: ServerEntry, store: CredentialStore) -> str:
    """Return what is stored for a remote server, for people. Never asks the user to unlock anything."""
    if not entry.url or entry.has_authorization:
        return ""
    if entry.oauth and (issuer := Logins(store).issuer(server_identity(entry.url))):
        return f"logged in at {issuer}"
    return "token stored" if token_name(entry) in store.names() else ""


def token_name(entry: ServerEntry) -> CredentialName:
    """Return the name of a server's token. It belongs to the host, so no other host gets it."""
    origin = parse_origin(entry.url)
    return CredentialName("mcp", f"{origin.scheme}://{origin.authority}")
