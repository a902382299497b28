"""Builds the environment of a command: no secrets, no pager, no editor, no prompts."""

import os
import re
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ostler.text.redact import Redactor

# A variable whose name contains one of these is a secret.
_SECRET_PARTS = (
    *("KEY", "SECRET", "TOKEN", "PASSW", "PASSPHRASE", "PASSCODE", "CREDENTIAL", "PRIVATE", "COOKIE", "ASKPASS"),
    *("WEBHOOK", "CONNECTION_STRING", "CONNECTIONSTRING", "CONN_STR", "CONNSTR", "MNEMONIC"),
    *("SEED_PHRASE", "SEEDPHRASE", "RECOVERY_PHRASE", "RECOVERY_CODE"),
)
# So is one that has one of these between underscores in its name.
_SECRET_WORDS = frozenset(
    {"PASS", "PWD", "AUTH", "PAT", "DSN", "JWT", "BEARER", "PIN", "OTP", "TOTP", "CRED", "CREDS", "PSK", "SALT", "SAS"}
)
# And one whose name ends with one of these, perhaps with a number.
_SECRET_ENDING = re.compile(r"(?:^|_)(?:SK|RK)[0-9]*$|(?:PW|PWD)[0-9]*$")
# A seed for random numbers is a short number; any other seed belongs to a wallet.
_SEED = re.compile(r"(?:^|_)SEED(?:_|$)")
_SHORT_NUMBER = re.compile(r"[0-9]{0,20}|random")
# Exceptions: programs need these, or they are not secret.
_SECRET_EXCEPTIONS = frozenset(
    {"SSH_AUTH_SOCK", "TOKENIZERS_PARALLELISM", "KEYBOARD_LAYOUT", "XKB_DEFAULT_LAYOUT", "PWD", "OLDPWD"}
)
# A secret in a value: a URL with a password, even a placeholder.
_SECRET_VALUE = re.compile(r"://[^/\s:@]*:[^/\s@]+@")
_MAX_SCANNED_LENGTH = 32_768

# These make every `bash -c` run a given file or function.
_CODE_VARIABLES = re.compile(r"BASH_ENV|ENV|PROMPT_COMMAND|BASH_FUNC_.*|SHELLOPTS|BASHOPTS")
# Ways out of a sandbox: SSH and GPG agents, the desktop, D-Bus.
_ESCAPE_VARIABLES = frozenset(
    {
        "SSH_AUTH_SOCK",
        "SSH_AGENT_PID",
        "GPG_AGENT_INFO",
        "DISPLAY",
        "WAYLAND_DISPLAY",
        "XAUTHORITY",
        "DBUS_SESSION_BUS_ADDRESS",
        "XDG_RUNTIME_DIR",
        "DOCKER_HOST",
        "TMUX",
        "STY",
    }
)

NON_INTERACTIVE_ENV = {
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "TERM": "dumb",
    "NO_COLOR": "1",
    "EDITOR": "true",
    "VISUAL": "true",
    "GIT_EDITOR": "true",
    "GIT_SEQUENCE_EDITOR": "true",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_SSH_COMMAND": "ssh -oBatchMode=yes",
    "SSH_ASKPASS_REQUIRE": "never",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
}
_USER_OVERRIDABLE = frozenset({"GIT_SSH_COMMAND"})  # a value set by the user is kept


@lru_cache(maxsize=1024)
def is_secret(name: str, value: str) -> bool:
    """Return whether an environment variable is probably a secret."""
    upper = name.upper()
    if upper in _SECRET_EXCEPTIONS:
        return False
    if any(part in upper for part in _SECRET_PARTS) or not _SECRET_WORDS.isdisjoint(upper.split("_")):
        return True
    if _SECRET_ENDING.search(upper) or (_SEED.search(upper) and not _SHORT_NUMBER.fullmatch(value)):
        return True
    return _SECRET_VALUE.search(value) is not None or _contains_secret(name, value)


def _contains_secret(name: str, value: str) -> bool:
    """Return whether the redactor finds a secret in the value; a value that is too long to scan is treated as one."""
    if len(value) < 4:
        return False
    if len(value) > _MAX_SCANNED_LENGTH:
        return True
    redactor = _redactor()
    return redactor.finds_secret(value) or redactor.finds_secret(f"{name}={value}")


@cache
def _redactor() -> "Redactor":
    from ostler.text.redact import Redactor

    return Redactor()


def command_environment(environ: Mapping[str, str], *, sandboxed: bool = False) -> dict[str, str]:
    """Return the environment of a command: without secrets and code variables, and non-interactive."""
    filtered = {
        name: value
        for name, value in environ.items()
        if not _is_withheld(name, value) and not (sandboxed and name in _ESCAPE_VARIABLES)
    }
    return {
        **filtered,
        **{
            name: value
            for name, value in NON_INTERACTIVE_ENV.items()
            if name not in _USER_OVERRIDABLE or name not in filtered
        },
    }


def withheld_variables(environ: Mapping[str, str]) -> list[str]:
    """Return the names of the variables that no command gets, also outside the sandbox."""
    return [name for name, value in environ.items() if _is_withheld(name, value)]


def _is_withheld(name: str, value: str) -> bool:
    return is_secret(name, value) or _CODE_VARIABLES.fullmatch(name) is not None


def path_without(path: str, folders: Sequence[str]) -> str:
    """Return a PATH for helper programs, without relative entries and folders that commands may write to."""
    entries = [entry for entry in path.split(os.pathsep) if entry.startswith("/") and not _is_within(entry, folders)]
    return os.pathsep.join(entries)


def _is_within(path: str, folders: Sequence[str]) -> bool:
    real = os.path.realpath(path)
    return any(real == folder or real.startswith(folder.rstrip("/") + "/") for folder in folders)
