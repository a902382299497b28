"""The pip of this machine: it knows the index, the proxy and the certificates that the person has set up."""

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from ostler.core.errors import BackendError, ToolError, UsageError
from ostler.core.protocols import CommandResult
from ostler.processes.helper_programs import run_program

_MIN_VERSION = (22, 3)  # the first that installs for another interpreter
_TIMEOUT = 3600.0


class Pip:
    """Found once, run often; its temporary files lie in `folder`."""

    def __init__(self, python: str, folder: Path) -> None:
        self._python = python
        self.temp_dir = folder / "pip"

    async def run(self, *arguments: str) -> CommandResult:
        """One command of pip's, to its end."""
        self.temp_dir.mkdir(parents=True, exist_ok=True)
        argv = [self._python, "-m", "pip", "--python", sys.executable, "--no-input", "--disable-pip-version-check"]
        env = {**os.environ, "TMPDIR": str(self.temp_dir), "PYTHONDONTWRITEBYTECODE": "1"}
        return await run_program([*argv, *arguments], cwd=str(self.temp_dir), timeout=_TIMEOUT, env=env)

    def downloaded_bytes(self) -> int:
        """How many bytes lie in its temporary folder by now."""
        sizes = 0
        for folder, _, names in os.walk(self.temp_dir):
            for name in names:
                try:
                    sizes += os.lstat(os.path.join(folder, name)).st_size
                except OSError:
                    continue  # it has just been moved
        return sizes


async def find_pip(folder: Path, pythons: Sequence[str] = (sys.executable, "python3", "python")) -> Pip:
    """The first that is new enough: our own environment need not have one."""
    for python in pythons:
        try:
            told = await run_program([python, "-m", "pip", "--version"], cwd="/", timeout=60, env=dict(os.environ))
        except ToolError:
            continue
        version = re.match(r"pip (\d+)\.(\d+)", told.stdout)
        if told.exit_code == 0 and version and (int(version[1]), int(version[2])) >= _MIN_VERSION:
            return Pip(python, folder)
    raise UsageError(
        "pip 22.3 or newer is needed to fetch packages, and none was found",
        hint="on Debian: apt-get install python3-pip",
    )


def explain_failure(result: CommandResult, what: str) -> BackendError:
    """Why pip failed, in a sentence."""
    errors = [line.partition("ERROR:")[2].strip() for line in result.stderr.splitlines() if "ERROR:" in line]
    again = "the same command goes on where it stopped"
    if "No space left on device" in result.stderr:
        return BackendError(
            f"{what} could not be fetched: the disk is full", code="disk_full", hint=f"free some; {again}"
        )
    if re.search(r"connection|retrying|timed? ?out|resolution", result.stderr, re.IGNORECASE):
        return BackendError(
            f"{what} could not be fetched: the package index cannot be reached",
            code="no_network",
            hint=f"look at the network and pip's own settings; {again}",
        )
    told = errors[-1][:300] if errors else "pip failed"
    return BackendError(f"{what} could not be fetched: {told}", code="fetch", hint=again)
