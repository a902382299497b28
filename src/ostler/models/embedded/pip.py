"""Runs pip, which knows the user's package index, proxy and certificates."""

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from ostler.core.commands import CommandResult
from ostler.core.errors import BackendError, ToolError, UsageError
from ostler.processes.helper_programs import run_program

_MIN_VERSION = (22, 3)  # the first version with --python
_TIMEOUT = 3600.0


class Pip:
    """Runs pip commands with temporary files in `folder`."""

    def __init__(self, python: str, folder: Path) -> None:
        self._python = python
        self.temp_dir = folder / "pip"

    async def run(self, *arguments: str) -> CommandResult:
        """Run a pip command and wait for its end."""
        self.temp_dir.mkdir(parents=True, exist_ok=True)
        argv = [self._python, "-m", "pip", "--python", sys.executable, "--no-input", "--disable-pip-version-check"]
        env = {**os.environ, "TMPDIR": str(self.temp_dir), "PYTHONDONTWRITEBYTECODE": "1"}
        return await run_program([*argv, *arguments], cwd=str(self.temp_dir), timeout=_TIMEOUT, env=env)

    def downloaded_bytes(self) -> int:
        """Return how many bytes are in the temporary folder."""
        total = 0
        for folder, _, names in os.walk(self.temp_dir):
            for name in names:
                try:
                    total += os.lstat(os.path.join(folder, name)).st_size
                except OSError:
                    continue  # moved in the meantime
        return total


async def find_pip(folder: Path, pythons: Sequence[str] = (sys.executable, "python3", "python")) -> Pip:
    """Return the first pip that is new enough; Ostler's own environment may not have one. Raises `UsageError`."""
    for python in pythons:
        try:
            result = await run_program([python, "-m", "pip", "--version"], cwd="/", timeout=60, env=dict(os.environ))
        except ToolError:
            continue
        version = re.match(r"pip (\d+)\.(\d+)", result.stdout)
        if result.exit_code == 0 and version and (int(version[1]), int(version[2])) >= _MIN_VERSION:
            return Pip(python, folder)
    raise UsageError(
        "pip 22.3 or newer is required to download packages, but was not found",
        hint="on Debian: apt-get install python3-pip",
    )


def explain_failure(result: CommandResult, what: str) -> BackendError:
    """Return the error to raise after a failed pip command."""
    errors = [line.partition("ERROR:")[2].strip() for line in result.stderr.splitlines() if "ERROR:" in line]
    retry_hint = "run the command again to resume"
    if "No space left on device" in result.stderr:
        return BackendError(
            f"could not download {what}: the disk is full", code="disk_full", hint=f"free disk space, then {retry_hint}"
        )
    if re.search(r"connection|retrying|timed? ?out|resolution", result.stderr, re.IGNORECASE):
        return BackendError(
            f"could not download {what}: the package index is unreachable",
            code="no_network",
            hint=f"check the network and pip's settings, then {retry_hint}",
        )
    reason = errors[-1][:300] if errors else "pip failed"
    return BackendError(f"could not download {what}: {reason}", code="fetch", hint=retry_hint)
