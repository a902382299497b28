"""Patterns of dangerous variables and files; `shell/programs.txt` and `shell/groups.txt` have the names."""

import re
from collections.abc import Mapping

CHANGES_MODES = "changes file permissions or owners"
CHANGES_PRIVILEGES = "runs with different privileges"


def split_names(names: str) -> tuple[str, ...]:
    """Split a string of names separated by whitespace."""
    return tuple(names.split())


# variables that contain a command line, with a target or tool in their names
COMMAND_VARIABLE_PATTERN = re.compile(
    r"CARGO_(?:TARGET_\w+_(?:RUNNER|LINKER)|BUILD_RUSTC\w*)|GIT_CONFIG_VALUE_\d+|\w+(?:_COMMAND|_CMD|PAGER|EDITOR"
    r"|_SHELL|_ASKPASS|_BROWSER|_OPENER|_HOOK)|npm_config_\w*shell"
)

PROMPT_VARIABLES = frozenset({"PS0", "PS1", "PS2", "PS3", "PS4", "ENV"})

# variables that contain options, and the texts in them that load or run code
OPTION_VARIABLES: Mapping[str, tuple[str, ...]] = {
    "NODE_OPTIONS": (
        *(
            f"{option}{path}"
            for option in ("-r ", "--require ", "--require=", "--import ", "--import=")
            for path in "./"
        ),
        "data:",
    ),
    "JAVA_TOOL_OPTIONS": ("OnError", "OnOutOfMemory", "agent"),
    "_JAVA_OPTIONS": ("OnError", "OnOutOfMemory", "agent"),
    "GOFLAGS": ("-toolexec", "-exec"),
    "MAKEFLAGS": ("eval", "SHELL", "-f", "$("),
    "GNUMAKEFLAGS": ("eval", "SHELL", "-f", "$("),
    "TAR_OPTIONS": ("exec", "command", "program", "script", "remove"),
    "RIPGREP_CONFIG_PATH": ("/", "."),
    "LESS": ("+", "-o", "-O"),
    "FZF_DEFAULT_OPTS": ("execute", "preview", "become"),
    "PYTHONWARNINGS": ("antigravity",),
    "PYTEST_ADDOPTS": ("basetemp",),
    "PYTHONBREAKPOINT": ("os.", "subprocess", "shutil"),
}

# files with credentials
SECRET_FILE = re.compile(
    r"(?:^|/)\.(?:ssh/(?:id_\w+|[\w.-]+\.(?:pem|key|ppk)|identity)|aws/credentials|netrc|pgpass|git-credentials|vault-token"
    r"|gnupg/(?:private-keys\S*|secring\S*)|(?:ssh|aws|gnupg)/?"
    r"|config/(?:gcloud/(?:credentials\.db|application_default_credentials\.json|access_tokens\.db)|gh/hosts\.yml))$"
    r"|/etc/g?shadow-?$|/proc/\w+/environ$"
)

# files that run automatically later or grant access: of the user, of git and of the system
STARTUP_FILE = re.compile(
    r"~/(?:\.(?:bashrc|bash_\w+|profile|zshrc|zshenv|zprofile|zlogin|zlogout|kshrc|mkshrc|cshrc|tcshrc|login|logout"
    r"|xinitrc"
    r"|xprofile|xsession|xsessionrc|inputrc|gitconfig|vimrc|exrc|gdbinit|lldbinit|pythonrc|irbrc|Rprofile|npmrc"
    r"|netrc|pypirc|tmux\.conf)"
    r"|\.ssh/(?:authorized_keys2?|config|rc|environment)|\.config/(?:git/config|(?:fish|autostart|systemd"
    r"|environment\.d|pip)(?:/.*)?)|(?:\.local/)?bin/.*"
    r"|Library/Launch\w+/.*)"
    r"|.*/\.git/(?:config(?:\.worktree)?|commondir|hooks/.+|info/attributes|HEAD|refs/.*|objects/.*)"
    r"|.*/(?:\.(?:ostler|vscode|claude|opencode|eidolon|husky)/.*|\.(?:mcp|eidolon)\.json|\.envrc|opencode\.jsonc?)"
    r"|/(?:etc|boot|bin|sbin|lib\w*|usr/(?:local/)?(?:s?bin|lib\w*)|var/spool/cron)/.*"
)
