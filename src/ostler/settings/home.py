"""Where Ostler keeps its own things, and what a project's folder there is called."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from ostler.core.errors import UsageError

_MAX_NAME_LENGTH = 100


def find_home(env: Mapping[str, str]) -> Path | None:
    """Ostler's home: OSTLER_HOME, else ~/.ostler; nothing when the environment names neither."""
    moved = env.get("OSTLER_HOME", "")
    if moved:
        return Path(Path.cwd(), expand_path(moved, env))
    person = user_home(env)
    return person / ".ostler" if person else None


def require_home(env: Mapping[str, str]) -> Path:
    """Ostler's home, whether it is there or not."""
    found = find_home(env)
    if found is None:
        raise UsageError("there is no home directory; set HOME or OSTLER_HOME to an absolute path")
    return found


def ensure_home(env: Mapping[str, str]) -> Path:
    """Ostler's home, made if need be, for the person alone."""
    path = require_home(env)
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be made: {error_text(error)}; set OSTLER_HOME to a folder of yours") from None
    if not os.access(path, os.W_OK | os.X_OK):
        raise UsageError(f"{path} cannot be written; set OSTLER_HOME to a folder of yours")
    return path


def user_home(env: Mapping[str, str]) -> Path | None:
    """The person's own home: HOME, if it is an absolute path."""
    name = env.get("HOME", "")
    return Path(name) if name.startswith("/") else None


def expand_path(name: str, env: Mapping[str, str]) -> Path:
    """A path with a leading ~ resolved by the given environment."""
    person = user_home(env)
    if person and (name == "~" or name.startswith("~/")):
        return person / name[2:]
    return Path(name)


def project_id(workspace: Path) -> str:
    """The name of a workspace's folder in our home: its path made readable, and a hash that keeps it unique."""
    import hashlib

    absolute = os.path.abspath(workspace)  # the name must not depend on symlinks on the way
    slug = re.sub(r"/+", "/", absolute.strip().lower().replace("\\", "/")).replace("/", "-")
    slug = re.sub(r"[^a-z0-9_-]", "_", slug).lstrip("-")
    short = hashlib.sha256(os.fsencode(absolute)).hexdigest()[:8]
    return f"{slug[-_MAX_NAME_LENGTH:].lstrip('-') or 'project'}-{short}"


def error_text(error: Exception) -> str:
    """The system's reason in plain words."""
    return error.strerror.lower() if isinstance(error, OSError) and error.strerror else str(error)
