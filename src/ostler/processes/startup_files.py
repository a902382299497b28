"""Lists the startup files in a home directory that commands must not change."""

from __future__ import annotations

import contextlib
import os

TYPE_CHECKING = False
if TYPE_CHECKING:  # the process that creates placeholders imports this file, and should start fast
    from collections.abc import Iterator
    from typing import Literal

    PlaceholderKind = Literal["file", "folder", "nothing"]

# Files with their placeholder content: empty, or sourcing the file that they would otherwise hide, so that a login
# works as without them.
STARTUP_FILES = {
    **dict.fromkeys(
        (
            *(".bashrc", ".bash_logout", ".bash_aliases", ".profile"),
            *(".zshenv", ".zprofile", ".zshrc", ".zlogin", ".zlogout"),
            *(".kshrc", ".mkshrc", ".cshrc", ".login", ".logout"),
            *(".xprofile", ".xsessionrc", ".pam_environment"),
            *(".gitconfig", ".hgrc", ".npmrc", ".gdbinit", ".lldbinit"),
        ),
        b"",
    ),
    ".bash_profile": b". ~/.bash_login\n",
    ".bash_login": b". ~/.profile\n",
    ".tcshrc": b"source ~/.cshrc\n",
}
STARTUP_FOLDERS = (".ssh", ".gnupg", ".config", ".local", ".vim")
# An empty placeholder would hide another file or break a login, so these are quarantined if a command creates them.
_WITHOUT_PLACEHOLDER = (
    *(".xsession", ".xinitrc", ".Xclients", ".xserverrc", ".inputrc", ".tmux.conf", ".screenrc"),
    *(".vimrc", ".gvimrc", ".exrc", ".emacs", ".emacs.el", ".emacs.d", ".curlrc", ".wgetrc", ".netrc", ".subversion"),
    *(".psqlrc", ".sqliterc", ".pdbrc", ".irbrc", ".Rprofile", ".forward", ".rhosts", ".shosts"),
    *(".cargo", ".rustup", ".nvm", ".pyenv", ".rbenv", ".asdf", ".sdkman", ".volta", ".bun", ".deno", ".oh-my-zsh"),
    # A login adds `bin` to the front of PATH if it exists.
    *("bin", ".bash_completion", ".selected_editor", ".lesskey", ".lessfilter", ".mailcap", ".muttrc", ".nanorc"),
    *(".mavenrc", ".yarnrc", ".yarnrc.yml", ".gemrc", ".bazelrc", ".ansible.cfg", ".ghci", ".pryrc", ".octaverc"),
    *(".kube/config", ".aws/config", ".docker/config.json", ".docker/cli-plugins", ".bundle/config"),
    *(".gradle/init.gradle", ".gradle/init.d", ".m2/settings.xml", ".julia/config", ".jupyter"),
    *(".ipython/profile_default/startup", ".claude", ".codex", ".gemini", ".cursor"),
)
# Needed if the workspace is one of these folders.
_CONFIG_SUBFOLDERS = (
    *("autostart", "systemd", "environment.d", "fish", "git", "hg", "nvim", "emacs", "tmux", "plasma-workspace"),
    *("nushell", "powershell", "xonsh", "pip", "gh"),
)


def home_directories() -> tuple[str, ...]:
    """Return the user's home directories from the environment and the password database."""
    import pwd

    found = [os.path.expanduser("~")]
    with contextlib.suppress(KeyError):  # the user id is not in the password database
        found.append(pwd.getpwuid(os.getuid()).pw_dir)
    return tuple(dict.fromkeys(os.path.realpath(path) for path in found if path.startswith("/")))


def startup_paths() -> Iterator[tuple[str, PlaceholderKind]]:
    """Yield each path, outer folders first, with the kind of placeholder it may get if it does not exist."""
    for home in home_directories():
        yield from ((os.path.join(home, name), "folder") for name in STARTUP_FOLDERS)
        yield from ((os.path.join(home, name), "file") for name in STARTUP_FILES)
        yield from ((os.path.join(home, name), "nothing") for name in _WITHOUT_PLACEHOLDER)
        yield from ((os.path.join(home, ".config", name), "folder") for name in _CONFIG_SUBFOLDERS)
        yield os.path.join(home, ".local", "bin"), "folder"
