"""Stored logins at remote servers: the tokens, and the client for which the authorization server issued them."""

import asyncio
import fcntl
import hashlib
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from ostler.core.credentials import CredentialName, CredentialStore
from ostler.core.errors import BackendError, UsageError

SERVICE = "mcp-login"
LOCK_SECONDS = 60.0
POLL_SECONDS = 0.05


class Login(msgspec.Struct, frozen=True, omit_defaults=True):
    """A login. Tokens and client belong to `issuer` only.

    `resource` is the server for which the tokens are valid. `scope` was requested; `missing_scope` is what the server
    asked for later.
    """

    issuer: str
    resource: str
    client_id: str
    token_endpoint: str
    access_token: str
    refresh_token: str = ""
    client_secret: str = ""
    auth_method: str = "none"
    revocation_endpoint: str = ""
    scope: str = ""
    missing_scope: str = ""


class Logins:
    """The logins by issuer and server. The calls may block and raise `UsageError`."""

    def __init__(self, store: CredentialStore) -> None:
        self._store = store

    def get(self, server: str) -> Login | None:
        """Return the login at a server, which is named by its identity."""
        name = next(iter(self._names(server)), None)
        secret = self._store.get(name) if name else None
        if secret is None:
            return None
        try:
            return msgspec.json.decode(secret, type=Login)
        except msgspec.DecodeError:
            raise UsageError(f"the stored login at {server} is damaged", hint="log in again") from None

    def issuer(self, server: str) -> str:
        """Return the issuer of the login at a server, without reading the tokens; empty if there is no login."""
        return next((name.account.partition(" ")[0] for name in self._names(server)), "")

    def set(self, server: str, login: Login) -> None:
        """Store the login and delete one of another issuer."""
        name = CredentialName(SERVICE, f"{login.issuer} {server}")
        self._store.set(name, msgspec.json.encode(login).decode())
        for other in self._names(server):
            if other != name:
                self._store.delete(other)

    def delete(self, server: str) -> bool:
        """Delete the login. Return whether there was one."""
        return any([self._store.delete(name) for name in self._names(server)])

    def _names(self, server: str) -> list[CredentialName]:
        return [
            name for name in self._store.names() if name.service == SERVICE and name.account.partition(" ")[2] == server
        ]


@asynccontextmanager
async def locked_login(folder: Path, server: str) -> AsyncIterator[None]:
    """Keep other sessions from changing the login at a server. Raises `BackendError` if this takes too long.

    Waits without blocking, so that the wait can be cancelled.
    """
    file = folder / f"login-{hashlib.sha256(server.encode()).hexdigest()[:32]}.lock"
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        async with asyncio.timeout(LOCK_SECONDS):
            while not _try_lock(descriptor):  # noqa: ASYNC110 - another process holds the lock
                await asyncio.sleep(POLL_SECONDS)
        yield
    except TimeoutError:
        raise BackendError(f"another process keeps {file} locked", code="timeout") from None
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
