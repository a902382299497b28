"""The paths in home directories that sandboxed commands can read; everything else there is hidden."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping

from ostler.core.errors import PathError
from ostler.processes.sandbox_policy import is_inside, leads_through
from ostler.processes.startup_files import home_directories
from ostler.settings.home import find_real_home
from ostler.text.lazy_regex import lazy_regex
from ostler.workspace.file_reading import READ_FLAGS, stat_regular

# Programs, libraries and caches that builds need, without the files next to them that contain tokens.
READABLE_NAMES = (
    *(".gitconfig", ".config/git", ".gitignore", ".gitignore_global", ".gitattributes", ".hgrc", ".editorconfig"),
    *("bin", ".local/bin", ".local/lib", ".local/include", ".local/pipx", ".local/state/nix", ".nix-profile"),
    *(f".local/share/{name}" for name in ("uv", "pipx", "virtualenvs", "pnpm", "mise", "fnm", "rtx", "zinit")),
    *(f".cache/{name}" for name in ("uv", "pip", "pre-commit", "ms-playwright", "bazelisk", "bazel", "deno")),
    *(".cargo", ".rustup", ".pyenv", ".nvm", ".npm", ".npm-global", ".node_modules", ".yarn", ".pnpm-store", ".bun"),
    *(".deno", ".volta", ".asdf", ".rbenv", ".rvm", ".gem", ".jenv", ".sdkman", ".rye", ".virtualenvs", ".venv"),
    *("go/bin", "go/pkg", "sdk", ".m2/repository", ".m2/wrapper", ".gradle/caches", ".gradle/wrapper", ".gradle/jdks"),
    *(".ivy2/cache", ".ivy2/local", ".sbt/boot", ".cabal/bin", ".cabal/packages", ".cabal/store", ".stack", ".ghcup"),
    *(".opam", ".elan", ".juliaup", ".julia/artifacts", ".julia/compiled", ".julia/packages", ".julia/registries"),
    *(".mix", ".hex/packages", ".dotnet", ".nuget/packages", ".pub-cache", ".platformio/packages", ".swiftly", ".zvm"),
    *(".conda/envs", ".conda/pkgs", "miniconda3", "anaconda3", "miniforge3", "mambaforge", "micromamba", "flutter"),
    *(".foundry/bin", ".android/sdk", "Android/Sdk", ".tool-versions", ".python-version", ".node-version"),
)
# Folders of tools that the user put elsewhere.
_VARIABLES = (
    *("VIRTUAL_ENV", "CONDA_PREFIX", "CARGO_HOME", "RUSTUP_HOME", "GOROOT", "GOBIN", "GOMODCACHE", "NVM_DIR"),
    *("PYENV_ROOT", "RBENV_ROOT", "ASDF_DIR", "ASDF_DATA_DIR", "VOLTA_HOME", "BUN_INSTALL", "DENO_DIR", "PNPM_HOME"),
    *("JAVA_HOME", "SDKMAN_DIR", "ANDROID_HOME", "ANDROID_SDK_ROOT", "DOTNET_ROOT", "FLUTTER_ROOT", "OPAMROOT"),
)
# Needed by programs that use the network, such as ssh, git and package managers.
_NETWORK_CREDENTIALS = (
    *(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".netrc", ".npmrc", ".pypirc", ".git-credentials"),
    *(".docker/config.json", ".config/gcloud", ".config/gh", ".pgpass", ".my.cnf", ".vault-token"),
    *(".config/git/credentials", ".config/hub", ".config/glab-cli", ".config/rclone", ".config/pypoetry/auth.toml"),
    *(".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".terraform.d/credentials.tfrc.json"),
    ".pub-cache/credentials.json",
)
CREDENTIAL_PATHS = (
    *_NETWORK_CREDENTIALS,
    *(".ostler", ".config/op", ".claude", ".codex", ".gemini", ".password-store", ".local/share/keyrings"),
    *(".mozilla", ".thunderbird", ".config/google-chrome", ".config/chromium", ".bash_history", ".zsh_history"),
)
_OTHER_HOMES = ("/home", "/root")
_INSTALLATION_PARTS = ("lib", "lib64", "libexec", "pyvenv.cfg")
_MISSING = lazy_regex(
    r"no such file|not found|cannot find|does not exist|permission denied|ENOENT|EACCES", re.IGNORECASE
)
HIDDEN_NOTE = (
    "[the sandbox hides home directories except for tools; name the path in the command, or ask the user to add it to"
    " security.sandbox_readable]"
)
_MAX_LINE, _MAX_CONFIG = 4_096, 65_536


def hidden_homes() -> tuple[str, ...]:
    """Return the folders that are hidden from commands: home directories, also of other users, and Ostler's own."""
    return tuple(dict.fromkeys((*home_directories(), *_OTHER_HOMES, *filter(None, [find_real_home(os.environ)]))))


def existing_credentials(root: str) -> tuple[str, ...]:
    """Return the paths with credentials that exist, without folders around the workspace."""
    home = os.path.expanduser("~")
    paths = {*(os.path.join(home, name) for name in CREDENTIAL_PATHS), *filter(None, [find_real_home(os.environ)])}
    real_root = os.path.realpath(root)
    return tuple(
        path for path in sorted(paths) if os.path.lexists(path) and not is_inside(real_root, os.path.realpath(path))
    )


def network_credentials() -> tuple[str, ...]:
    """Return the paths with credentials that a command with network access may read."""
    home = os.path.expanduser("~")
    return tuple(os.path.join(home, name) for name in _NETWORK_CREDENTIALS)


def readable_paths(root: str, granted: Iterable[str], environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return what commands may read in home directories, whether it exists or not.

    `granted` are the paths that the user named; they may be a whole home. Paths that lead through a symlink in the
    workspace are left out, because a command could make it point elsewhere.
    """
    home, homes = os.path.expanduser("~"), hidden_homes()
    tools = (*(os.path.join(home, name) for name in READABLE_NAMES), *_tool_folders(environ))
    chosen = [root, *repository_folders(root)] if root else []
    chosen += [path for path in tools if not _contains_home(os.path.realpath(path), homes)]
    chosen += [os.path.abspath(os.path.expanduser(path)) for path in granted]
    return tuple(path for path in dict.fromkeys(chosen) if not leads_through(path, root))


def mentions_hidden_path(output: str) -> bool:
    """Return whether a line of the output says that a file in a home directory is missing or cannot be read."""
    homes = [f"{home}/" for home in hidden_homes()]
    return any(_MISSING.search(line) and any(home in line for home in homes) for line in output.splitlines())


def _contains_home(path: str, homes: Iterable[str]) -> bool:
    return os.path.dirname(path) == "/home" or any(is_inside(home, path) for home in homes)


def _tool_folders(environ: Mapping[str, str]) -> Iterator[str]:
    yield from (environ[name] for name in _VARIABLES if environ.get(name, "").startswith("/"))
    for entry in environ.get("PATH", "").split(os.pathsep):
        if entry.startswith("/"):
            yield entry
            installation = os.path.dirname(entry.rstrip("/"))
            if not installation.endswith("/.local") and any(
                os.path.exists(os.path.join(installation, name)) for name in _INSTALLATION_PARTS
            ):
                yield installation


def repository_folders(root: str) -> Iterator[str]:
    """Yield the repository around a workspace, and the git directories elsewhere that it uses."""
    top = _repository_top(root)
    if not top or _contains_home(top, hidden_homes()):
        return
    yield top
    pointer = _read_line(os.path.join(top, ".git"))
    if not pointer.startswith("gitdir: "):
        return
    folder = os.path.realpath(os.path.join(top, pointer.removeprefix("gitdir: ")))
    if not is_inside(folder, top) and _points_back(folder, top):
        yield folder
        worktrees = os.path.dirname(folder)
        if os.path.basename(worktrees) == "worktrees" and os.path.isfile(os.path.join(worktrees, "../HEAD")):
            yield os.path.dirname(worktrees)


def _repository_top(root: str) -> str:
    """Return the folder with the repository that contains a workspace, or an empty string."""
    folder = os.path.realpath(root)
    while not os.path.lexists(os.path.join(folder, ".git")):
        if (parent := os.path.dirname(folder)) == folder:
            return ""
        folder = parent
    return folder


def _points_back(git_directory: str, top: str) -> bool:
    """Return whether the directory names this repository: a hostile repository could point to any directory."""
    if worktree := _read_line(os.path.join(git_directory, "gitdir")):
        return os.path.realpath(worktree) == os.path.join(top, ".git")
    config = _read(os.path.join(git_directory, "config"), _MAX_CONFIG)
    settings = [line.partition("=") for line in config.splitlines()]
    paths = [value.strip() for key, _, value in settings if key.strip() == "worktree"]
    return any(os.path.realpath(os.path.join(git_directory, path)) == top for path in paths)


def _read_line(file: str) -> str:
    return _read(file, _MAX_LINE).partition("\n")[0].strip()


def _read(path: str, limit: int) -> str:
    """Return the start of a regular file, or an empty string. A pipe would keep the reader waiting for ever."""
    try:
        with open(path, "rb", opener=lambda name, _: os.open(name, READ_FLAGS)) as file:
            stat_regular(file.fileno(), path)
            return file.read(limit).decode("utf-8", "replace")
    except (OSError, PathError):
        return ""
