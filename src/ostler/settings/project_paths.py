"""Finds a workspace, and the folders in which Ostler stores data about it."""

import os
from pathlib import Path

from ostler.core.errors import UsageError
from ostler.settings.effective import Settings
from ostler.settings.grants import ProjectGrants
from ostler.settings.home import ensure_home, expand_path, project_id, require_home


def workspace_path(cwd: str) -> Path:
    """Return the workspace as an absolute path. Raises `UsageError` if it is not a folder."""
    try:
        path = Path(cwd).resolve()
    except OSError:
        raise UsageError("the current directory was deleted", hint="change to another directory") from None
    if not path.is_dir():
        raise UsageError(f"--cwd {cwd}: no such folder")
    return path


def project_grants(cwd: Path) -> ProjectGrants:
    """Return the store of the standing rules that the user set for a workspace."""
    return ProjectGrants(project_folder(cwd))


def project_folder(cwd: Path) -> Path:
    """Return the folder where Ostler stores data about a workspace."""
    return ensure_home(os.environ) / "projects" / project_id(cwd)


def cache_folder(settings: Settings) -> Path:
    """Return the folder of files that can be rebuilt."""
    return require_home(os.environ) / expand_path(settings.config.cache.path or "cache", os.environ)
