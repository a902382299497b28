"""The API keys and the logins of Agent Zero servers."""

import json

from ostler.core.credentials import CredentialName, CredentialStore


class ZeroCredentials:
    """What is stored for the server at HOST:PORT: its API key, and a user of its web page with the password."""

    def __init__(self, store: CredentialStore, address: str) -> None:
        self._store = store
        self._key = CredentialName("agent_zero", address)
        self._login = CredentialName("agent_zero_login", address)

    def api_key(self) -> str:
        """Return the key, or an empty string."""
        return self._store.get(self._key) or ""

    def login(self) -> tuple[str, str] | None:
        """Return user and password."""
        stored = self._store.get(self._login)
        if not stored:
            return None
        user, password = json.loads(stored)
        return user, password

    def set_api_key(self, key: str) -> None:
        self._store.set(self._key, key)

    def set_login(self, user: str, password: str) -> None:
        self._store.set(self._login, json.dumps([user, password]))

    def delete(self) -> bool:
        """Delete key and login. Return False if there was neither."""
        found = [self._store.delete(name) for name in (self._key, self._login)]
        return any(found)
