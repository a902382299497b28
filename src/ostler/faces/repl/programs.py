"""The person's own editor, run on a file while the prompt waits."""

import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping

USUAL = ("nano", "vi", "vim", "emacs")


def editor_command(env: Mapping[str, str]) -> list[str]:
    """VISUAL, EDITOR, or one that is usually there; nothing where there is none."""
    for name in ("VISUAL", "EDITOR"):
        if words := _words(env.get(name, "")):
            return words
    return next(([path] for name in USUAL if (path := shutil.which(name))), [])


def run_editor(path: str) -> bool:
    """Until it is closed; False where there is none or it failed."""
    command = editor_command(os.environ)
    if not command:
        return False
    try:
        return subprocess.call([*command, path]) == 0
    except OSError:
        return False


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:
        return []
