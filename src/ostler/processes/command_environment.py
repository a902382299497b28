"""Builds the environment of a command: no secrets, no pager, no editor, no prompts."""

import os
import re
from collections.abc import Mapping, Sequence

# A variable whose name contains one of these is a secret.
_SECRET_PARTS = ("KEY", "SECRET", "TOKEN", "PASSW", "PASSPHRASE", "CREDENTIAL", "PRIVATE", "COOKIE", "ASKPASS")
# So is one that has one of these between underscores in its name.
_SECRET_WORDS = frozenset({"PASS", "AUTH", "PAT", "DSN", "JWT", "BEARER", "PIN", "OTP"})
# Exceptions: programs need these, or they are not secret.
_SECRET_EXCEPTIONS = frozenset({"SSH_AUTH_SOCK", "TOKENIZERS_PARALLELISM", "KEYBOARD_LAYOUT", "XKB_DEFAULT_LAYOUT"})
# A secret in a value: a URL with a password.
_SECRET_VALUE = re.compile(r"://[^/\s:@]*:[^/\s@]+@")

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


def is_secret(name: str, value: str) -> bool:
    """Return whether an environment variable is probably a secret."""
    upper = name.upper()
    if upper in _SECRET_EXCEPTIONS:
        return False
    if any(part in upper for part in _SECRET_PARTS) or not _SECRET_WORDS.isdisjoint(upper.split("_")):
        return True
    return _SECRET_VALUE.search(value) is not None


def command_environment(environ: Mapping[str, str], *, sandboxed: bool = False) -> dict[str, str]:
    """Return the environment of a command: without secrets and code variables, and non-interactive."""
    filtered = {
        name: value
        for name, value in environ.items()
        if not is_secret(name, value)
        and not _CODE_VARIABLES.fullmatch(name)
        and not (sandboxed and name in _ESCAPE_VARIABLES)
    }
    return {
        **filtered,
        **{
            name: value
            for name, value in NON_INTERACTIVE_ENV.items()
            if name not in _USER_OVERRIDABLE or name not in filtered
        },
    }


def path_without(path: str, folders: Sequence[str]) -> str:
    """Return a PATH for helper programs, without relative entries and folders that commands may write to."""
    entries = [entry for entry in path.split(os.pathsep) if entry.startswith("/") and not _is_within(entry, folders)]
    return os.pathsep.join(entries)


def _is_within(path: str, folders: Sequence[str]) -> bool:
    real = os.path.realpath(path)
    return any(real == folder or real.startswith(folder.rstrip("/") + "/") for folder in folders)
