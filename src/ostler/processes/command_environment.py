"""What a command finds in its environment: no secrets, no pager, no editor, no prompt that waits for a person."""

import os
import re
from collections.abc import Mapping, Sequence

# A name with one of these anywhere in it names a secret.
_SECRET_PARTS = ("KEY", "SECRET", "TOKEN", "PASSW", "PASSPHRASE", "CREDENTIAL", "PRIVATE", "COOKIE", "ASKPASS")
# A name with one of these between underscores does.
_SECRET_WORDS = frozenset({"PASS", "AUTH", "PAT", "DSN", "JWT", "BEARER", "PIN", "OTP"})
# ... except for these, which programs need or which hold no secret.
_SECRET_EXCEPTIONS = frozenset({"SSH_AUTH_SOCK", "TOKENIZERS_PARALLELISM", "KEYBOARD_LAYOUT", "XKB_DEFAULT_LAYOUT"})
# A secret in a value: an address with a name and a password before the host.
_SECRET_VALUE = re.compile(r"://[^/\s:@]*:[^/\s@]+@")

# They make every `bash -c` run a file or a function of somebody's choice.
_CODE_VARIABLES = re.compile(r"BASH_ENV|ENV|PROMPT_COMMAND|BASH_FUNC_.*|SHELLOPTS|BASHOPTS")
# Ways out of a sandbox: the agents, the desktop, the bus.
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
_USER_OVERRIDABLE = frozenset({"GIT_SSH_COMMAND"})  # a person's own value stays


def is_secret(name: str, value: str) -> bool:
    """Whether a variable would tell a command what it need not know."""
    upper = name.upper()
    if upper in _SECRET_EXCEPTIONS:
        return False
    if any(part in upper for part in _SECRET_PARTS) or not _SECRET_WORDS.isdisjoint(upper.split("_")):
        return True
    return _SECRET_VALUE.search(value) is not None


def command_environment(environ: Mapping[str, str], *, sandboxed: bool = False) -> dict[str, str]:
    """The environment of a command: what there is, without secrets, and quiet."""
    kept = {
        name: value
        for name, value in environ.items()
        if not is_secret(name, value)
        and not _CODE_VARIABLES.fullmatch(name)
        and not (sandboxed and name in _ESCAPE_VARIABLES)
    }
    return {
        **kept,
        **{
            name: value
            for name, value in NON_INTERACTIVE_ENV.items()
            if name not in _USER_OVERRIDABLE or name not in kept
        },
    }


def path_without(path: str, folders: Sequence[str]) -> str:
    """A search path for programs of ours, without the places that commands may write to: a virtual environment's."""
    kept = [place for place in path.split(os.pathsep) if place.startswith("/") and not _is_within(place, folders)]
    return os.pathsep.join(kept)


def _is_within(place: str, folders: Sequence[str]) -> bool:
    real = os.path.realpath(place)
    return any(real == folder or real.startswith(folder.rstrip("/") + "/") for folder in folders)
