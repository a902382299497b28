"""Protocol of the place where keys and tokens are stored."""

from collections.abc import Sequence
from typing import Protocol

import msgspec


class CredentialName(msgspec.Struct, frozen=True, order=True):
    """Names one key or token: the service that it is for, and the account at this service."""

    service: str
    account: str


class CredentialStore(Protocol):
    """Keys and tokens by name. The calls may block, for example while the user unlocks the system's keyring.

    All of them raise `UsageError` if the store cannot be used.
    """

    def get(self, name: CredentialName) -> str | None: ...

    def set(self, name: CredentialName, secret: str) -> None: ...

    def delete(self, name: CredentialName) -> bool:
        """Delete a credential. Return whether there was one."""

    def names(self) -> Sequence[CredentialName]:
        """Return the names of all credentials, sorted. Never asks the user to unlock anything."""

    def version(self) -> object:
        """Return a value that differs after each change of the store, also by another process."""
