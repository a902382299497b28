"""The system's keyring: the `keyring` package if it is installed, or else the program `secret-tool`."""

import subprocess
from collections.abc import Mapping
from typing import Any, Protocol

from ostler.core.credentials import CredentialName
from ostler.core.errors import UsageError

_PREFIX = "ostler:"
_MIN_PRIORITY = 1  # of a `keyring` backend; those that store nothing, or plain text, have less
_TIMEOUT_SECONDS = 120.0  # the user may have to unlock the keyring


class SystemKeyring(Protocol):
    """A keyring of the operating system. The calls raise `UsageError`."""

    id: str

    def get(self, name: CredentialName) -> str | None: ...

    def set(self, name: CredentialName, secret: str) -> None: ...

    def delete(self, name: CredentialName) -> None: ...


def find_keyring(env: Mapping[str, str]) -> SystemKeyring | None:
    """Return the keyring of this session, or None if there is none."""
    return _find_package() or _find_program(env)


def _find_package() -> SystemKeyring | None:
    try:
        import keyring
    except ImportError:
        return None
    backend = keyring.get_keyring()
    return PackageKeyring(backend) if backend.priority >= _MIN_PRIORITY else None


def _find_program(env: Mapping[str, str]) -> SystemKeyring | None:
    import shutil

    program = shutil.which("secret-tool", path=env.get("PATH", ""))
    return ProgramKeyring(program, env) if program and env.get("DBUS_SESSION_BUS_ADDRESS") else None


class PackageKeyring:
    """A backend of the `keyring` package."""

    id = "keyring"

    def __init__(self, backend: Any) -> None:
        self._backend = backend

    def get(self, name: CredentialName) -> str | None:
        secret: str | None = self._call("get_password", name)
        return secret

    def set(self, name: CredentialName, secret: str) -> None:
        self._call("set_password", name, secret)

    def delete(self, name: CredentialName) -> None:
        if self.get(name) is not None:
            self._call("delete_password", name)

    def _call(self, method: str, name: CredentialName, *arguments: str) -> Any:
        try:
            return getattr(self._backend, method)(_PREFIX + name.service, name.account, *arguments)
        except Exception as error:  # each backend has its own errors, which may quote the secret
            raise UsageError(f"the system keyring failed: {type(error).__name__}", hint="unlock it") from None


class ProgramKeyring:
    """The Secret Service of the desktop, through `secret-tool`."""

    id = "secret-tool"

    def __init__(self, program: str, env: Mapping[str, str]) -> None:
        self._program = program
        self._env = env

    def get(self, name: CredentialName) -> str | None:
        found = self._run("lookup", name)
        return found.stdout if found.returncode == 0 and found.stdout else None

    def set(self, name: CredentialName, secret: str) -> None:
        self._check(self._run("store", name, secret, f"--label=Ostler: {name.service}"))

    def delete(self, name: CredentialName) -> None:
        if self.get(name) is not None:
            self._check(self._run("clear", name))

    def _check(self, done: "subprocess.CompletedProcess[str]") -> None:
        if done.returncode:
            raise UsageError(f"the system keyring failed: secret-tool ended with status {done.returncode}")

    def _run(
        self, action: str, name: CredentialName, secret: str = "", *options: str
    ) -> "subprocess.CompletedProcess[str]":
        """Run the program. The secret is passed on its standard input, because others can see arguments."""
        command = [self._program, action, *options, "service", _PREFIX + name.service, "account", name.account]
        try:
            return subprocess.run(
                command,
                input=secret,
                capture_output=True,
                text=True,
                env=dict(self._env),
                timeout=_TIMEOUT_SECONDS,
                check=False,
            )
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            raise UsageError(f"the system keyring failed: {type(error).__name__}", hint="unlock it") from None
