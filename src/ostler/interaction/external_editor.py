"""Opens a file in `VISUAL`, `EDITOR` or a common editor while the prompt waits."""

import asyncio
import os
import shlex
import shutil
from asyncio.subprocess import Process
from collections.abc import Mapping

EXIT_TIMEOUT_SECONDS = 2.0  # time for an editor to restore the terminal
DEFAULT_EDITORS = ("nano", "vi", "vim", "emacs")


def editor_command(env: Mapping[str, str]) -> list[str]:
    """Return the command of VISUAL, EDITOR or an installed editor; an empty list if there is none."""
    for name in ("VISUAL", "EDITOR"):
        if words := _split_command(env.get(name, "")):
            return words
    return next(([path] for name in DEFAULT_EDITORS if (path := shutil.which(name))), [])


async def run_editor(path: str) -> bool:
    """Run the editor until it is closed. Return False if there is none or it failed."""
    command = editor_command(os.environ)
    if not command:
        return False
    try:
        process = await asyncio.create_subprocess_exec(*command, path)
    except OSError:
        return False
    try:
        return await process.wait() == 0
    finally:
        await _terminate(process)


async def _terminate(process: Process) -> None:
    """Stop the editor if it is still running; otherwise it would keep the terminal after Ostler exits."""
    if process.returncode is not None:
        return
    process.terminate()
    try:
        await asyncio.wait_for(process.wait(), EXIT_TIMEOUT_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()


def _split_command(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:
        return []
