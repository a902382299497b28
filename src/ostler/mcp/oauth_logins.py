"""Stored logins at remote servers: the tokens, and the client for which the authorization server issued them."""

import msgspec

from ostler.core.credentials import CredentialName, CredentialStore
from ostler.core.errors import UsageError

SERVICE = "mcp-login"


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
