"""Stores keys and tokens: the secrets in the system's keyring or, without one, in a file for the user only.

The file lists the names of all credentials, so that listing them never unlocks a keyring.
"""

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ostler.core.credentials import CredentialName
from ostler.core.errors import UsageError
from ostler.credentials.system_keyring import SystemKeyring, find_keyring
from ostler.settings.home import error_text, require_home
from ostler.settings.private_file import locked_for_change, read_private, replace_private

FILE_NAME = "credentials.json"
_OTHERS = 0o077  # nobody else may read or write the file


class _StoredCredential(msgspec.Struct, frozen=True, omit_defaults=True):
    """An entry of the file: the secret, or the id of the keyring that has it."""

    service: str
    account: str
    secret: str = ""
    keyring: str = ""

    @property
    def name(self) -> CredentialName:
        return CredentialName(self.service, self.account)


class _CredentialFile(msgspec.Struct, frozen=True):
    credentials: tuple[_StoredCredential, ...] = ()
    version: int = 1


class LocalCredentials:
    """The credentials of one Ostler home."""

    def __init__(self, home: Path, keyring: SystemKeyring | None = None) -> None:
        self._file = home / FILE_NAME
        self._keyring = keyring

    def get(self, name: CredentialName) -> str | None:
        """Return the secret, or None if there is none. Raises `UsageError`."""
        entry = self._read().get(name)
        if entry is None:
            return None
        return self._require_keyring(entry).get(name) if entry.keyring else entry.secret

    def set(self, name: CredentialName, secret: str) -> None:
        """Store a secret, in the keyring if it accepts it. Raises `UsageError`."""
        _check(name, secret)
        with locked_for_change(self._file):
            entries = self._read()
            entries[name] = self._store(name, secret)
            self._write(entries)

    def delete(self, name: CredentialName) -> bool:
        """Delete a credential. Return whether there was one. Raises `UsageError`."""
        with locked_for_change(self._file):
            entries = self._read()
            entry = entries.pop(name, None)
            if entry is None:
                return False
            if entry.keyring:
                self._require_keyring(entry).delete(name)
            self._write(entries)
            return True

    def names(self) -> Sequence[CredentialName]:
        """Return the names of all credentials, sorted. Raises `UsageError`."""
        return sorted(self._read())

    def version(self) -> object:
        """Return a value that differs after each change: each one replaces the file."""
        try:
            found = self._file.stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns

    def _store(self, name: CredentialName, secret: str) -> _StoredCredential:
        if self._keyring:
            try:
                self._keyring.set(name, secret)
                return _StoredCredential(name.service, name.account, keyring=self._keyring.id)
            except UsageError:
                pass  # for example a locked keyring in a session without a screen
        return _StoredCredential(name.service, name.account, secret=secret)

    def _require_keyring(self, entry: _StoredCredential) -> SystemKeyring:
        if self._keyring is None or self._keyring.id != entry.keyring:
            raise UsageError(
                f"the key of {entry.account} for {entry.service} is in the system keyring ({entry.keyring}), "
                "which is not available",
                hint="log in to the desktop session, or store the key again",
            )
        return self._keyring

    def _read(self) -> dict[CredentialName, _StoredCredential]:
        try:
            data = read_private(self._file, forbidden_mode=_OTHERS)
            found = msgspec.json.decode(data, type=_CredentialFile) if data else _CredentialFile()
        except (OSError, ValueError, RecursionError) as error:
            raise UsageError(f"{self._file} cannot be used: {error_text(error)}", hint="repair or move it") from None
        if found.version != 1:
            raise UsageError(f"{self._file} is of a newer version of Ostler", hint="update Ostler")
        return {entry.name: entry for entry in found.credentials}

    def _write(self, entries: dict[CredentialName, _StoredCredential]) -> None:
        content = _CredentialFile(tuple(entries[name] for name in sorted(entries)))
        replace_private(self._file, msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n")


def _check(name: CredentialName, secret: str) -> None:
    """Raise `UsageError` for texts that not every store can hold."""
    for kind, text in (("service", name.service), ("account", name.account), ("key", secret)):
        if not text or not text.isprintable():
            raise UsageError(f"the {kind} is empty or contains control characters")


def open_credentials() -> LocalCredentials:
    """Return the store of keys and tokens of the user."""
    return LocalCredentials(require_home(os.environ), find_keyring(os.environ))
