"""The folder that is worked in, as whoever was started there means it, and what Ostler keeps of it."""

import os
from pathlib import Path

from ostler.core.errors import UsageError
from ostler.settings.home import ensure_home, project_id


def workspace_path(cwd: str) -> Path:
    """The workspace as an absolute path; it must be a folder."""
    try:
        path = Path(cwd).resolve()
    except OSError:
        raise UsageError("the folder this was started in is gone", hint="go to one that is there") from None
    if not path.is_dir():
        raise UsageError(f"--cwd {cwd}: there is no such folder")
    return path


def project_folder(cwd: Path) -> Path:
    """What Ostler keeps of a workspace."""
    return ensure_home(os.environ) / "projects" / project_id(cwd)
