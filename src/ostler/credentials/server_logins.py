"""The logins at Ostler servers: a token for each server, and the certificate that the server must show."""

from collections.abc import Sequence

import msgspec

from ostler.core.credentials import CredentialName, CredentialStore
from ostler.core.errors import UsageError

SERVICE = "server"


class ServerLogin(msgspec.Struct, frozen=True, omit_defaults=True):
    """A token of a server. `fingerprint` is the SHA-256 of the only certificate to accept, or empty for a usual check.

    With `allow_plain` the user agreed to send the token unencrypted.
    """

    token: str
    fingerprint: str = ""
    allow_plain: bool = False


class ServerLogins:
    """The logins by the server's URL, which is `SCHEME://HOST:PORT`. The calls raise `UsageError`."""

    def __init__(self, store: CredentialStore) -> None:
        self._store = store

    def get(self, url: str) -> ServerLogin | None:
        secret = self._store.get(CredentialName(SERVICE, url))
        if secret is None:
            return None
        try:
            return msgspec.json.decode(secret, type=ServerLogin)
        except msgspec.DecodeError:
            raise UsageError(f"the stored login for {url} is damaged", hint=f"run `ostler login {url}`") from None

    def set(self, url: str, login: ServerLogin) -> None:
        self._store.set(CredentialName(SERVICE, url), msgspec.json.encode(login).decode())

    def delete(self, url: str) -> bool:
        """Delete a login. Return whether there was one."""
        return self._store.delete(CredentialName(SERVICE, url))

    def urls(self) -> Sequence[str]:
        return [name.account for name in self._store.names() if name.service == SERVICE]
