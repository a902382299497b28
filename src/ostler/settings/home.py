"""Locates Ostler's home directory and the project folders in it."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from ostler.core.errors import UsageError

_MAX_NAME_LENGTH = 100


def find_home(env: Mapping[str, str]) -> Path | None:
    """Return Ostler's home: OSTLER_HOME, else ~/.ostler, or None if neither it nor HOME is set."""
    custom_home = env.get("OSTLER_HOME", "")
    if custom_home:
        return Path(Path.cwd(), expand_path(custom_home, env))
    folder = user_home(env)
    return folder / ".ostler" if folder else None


def find_real_home(env: Mapping[str, str]) -> str:
    """Return the real path of Ostler's home, or an empty string."""
    home = find_home(env)
    return os.path.realpath(home) if home else ""


def require_home(env: Mapping[str, str]) -> Path:
    """Return Ostler's home, which may not exist yet. Raises `UsageError` if it is unknown."""
    found = find_home(env)
    if found is None:
        raise UsageError("the home directory is unknown; set HOME or OSTLER_HOME to an absolute path")
    return found


def ensure_home(env: Mapping[str, str]) -> Path:
    """Return Ostler's home and create it if necessary, accessible only to the user. Raises `UsageError`."""
    path = require_home(env)
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{path} cannot be created: {error_text(error)}; set OSTLER_HOME to a folder that you can write"
        ) from None
    if not os.access(path, os.W_OK | os.X_OK):
        raise UsageError(f"{path} is not writable; set OSTLER_HOME to a folder that you can write")
    return path


def user_home(env: Mapping[str, str]) -> Path | None:
    """Return the user's home directory: HOME, or None if it is not an absolute path."""
    name = env.get("HOME", "")
    return Path(name) if name.startswith("/") else None


def expand_path(name: str, env: Mapping[str, str]) -> Path:
    """Return a path with a leading `~` replaced by HOME of the given environment."""
    home = user_home(env)
    if home and (name == "~" or name.startswith("~/")):
        return home / name[2:]
    return Path(name)


def is_same_file(first: str | Path, second: str | Path) -> bool:
    """Return whether two paths name the same existing file or folder."""
    try:
        return os.path.samefile(first, second)
    except (OSError, ValueError):
        return False


def project_id(workspace: Path) -> str:
    """Return the name of a workspace's folder in Ostler's home: its readable path and a hash that makes it unique."""
    import hashlib

    absolute = os.path.abspath(workspace)  # not resolved: the name must not depend on symlinks
    slug = re.sub(r"/+", "/", absolute.strip().lower().replace("\\", "/")).replace("/", "-")
    slug = re.sub(r"[^a-z0-9_-]", "_", slug).lstrip("-")
    short = hashlib.sha256(os.fsencode(absolute)).hexdigest()[:8]
    return f"{slug[-_MAX_NAME_LENGTH:].lstrip('-') or 'project'}-{short}"


def error_text(error: Exception) -> str:
    """Return the reason of an operating system error, or the error as text."""
    return error.strerror.lower() if isinstance(error, OSError) and error.strerror else str(error)
