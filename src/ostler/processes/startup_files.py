"""What lies in a person's home and makes programs run later, or says who may come in: no command may change it."""

import contextlib
import os
from collections.abc import Iterator
from typing import Literal

PlaceholderKind = Literal["file", "folder", "nothing"]

# Files that may be empty, or lead on to what they would hide if they were: a login must go on as without them.
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
# An empty one would hide another file, or end a session before it begins: what a command makes of them is set aside.
_WITHOUT_PLACEHOLDER = (
    *(".xsession", ".xinitrc", ".Xclients", ".xserverrc", ".inputrc", ".tmux.conf", ".screenrc"),
    *(".vimrc", ".gvimrc", ".exrc", ".emacs", ".emacs.el", ".emacs.d", ".curlrc", ".wgetrc", ".netrc", ".subversion"),
    *(".psqlrc", ".sqliterc", ".pdbrc", ".irbrc", ".Rprofile", ".forward", ".rhosts", ".shosts"),
    *(".cargo", ".rustup", ".nvm", ".pyenv", ".rbenv", ".asdf", ".sdkman", ".volta", ".bun", ".deno", ".oh-my-zsh"),
    # A login puts `bin` before all other programs where there is one.
    *("bin", ".bash_completion", ".selected_editor", ".lesskey", ".lessfilter", ".mailcap", ".muttrc", ".nanorc"),
    *(".mavenrc", ".yarnrc", ".yarnrc.yml", ".gemrc", ".bazelrc", ".ansible.cfg", ".ghci", ".pryrc", ".octaverc"),
    *(".kube/config", ".aws/config", ".docker/config.json", ".docker/cli-plugins", ".bundle/config"),
    *(".gradle/init.gradle", ".gradle/init.d", ".m2/settings.xml", ".julia/config", ".jupyter"),
    *(".ipython/profile_default/startup", ".claude", ".codex", ".gemini", ".cursor"),
)
# For a workspace that is one of those folders.
_CONFIG_SUBFOLDERS = (
    *("autostart", "systemd", "environment.d", "fish", "git", "hg", "nvim", "emacs", "tmux", "plasma-workspace"),
    *("nushell", "powershell", "xonsh", "pip", "gh"),
)


def home_directories() -> tuple[str, ...]:
    """The person's home by the environment, and by the machine's book of users."""
    import pwd

    found = [os.path.expanduser("~")]
    with contextlib.suppress(KeyError):  # a user without a name has no other home
        found.append(pwd.getpwuid(os.getuid()).pw_dir)
    return tuple(dict.fromkeys(os.path.realpath(path) for path in found if path.startswith("/")))


def startup_paths() -> Iterator[tuple[str, PlaceholderKind]]:
    """Each path, outer folders first, and what may keep its place where there is none."""
    for home in home_directories():
        yield from ((os.path.join(home, name), "folder") for name in STARTUP_FOLDERS)
        yield from ((os.path.join(home, name), "file") for name in STARTUP_FILES)
        yield from ((os.path.join(home, name), "nothing") for name in _WITHOUT_PLACEHOLDER)
        yield from ((os.path.join(home, ".config", name), "folder") for name in _CONFIG_SUBFOLDERS)
        yield os.path.join(home, ".local", "bin"), "folder"
