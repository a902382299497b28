"""The person's own editor, run on a file while the prompt waits."""

import asyncio
import os
import shlex
import shutil
from asyncio.subprocess import Process
from collections.abc import Mapping

EXIT_TIMEOUT_SECONDS = 2.0  # so long an editor may take to put its terminal right
DEFAULT_EDITORS = ("nano", "vi", "vim", "emacs")


def editor_command(env: Mapping[str, str]) -> list[str]:
    """VISUAL, EDITOR, or one that is usually there; nothing where there is none."""
    for name in ("VISUAL", "EDITOR"):
        if words := _split_command(env.get(name, "")):
            return words
    return next(([path] for name in DEFAULT_EDITORS if (path := shutil.which(name))), [])


async def run_editor(path: str) -> bool:
    """Until it is closed, or nobody waits any more; False where there is none or it failed."""
    command = editor_command(os.environ)
    if not command:
        return False
    try:
        running = await asyncio.create_subprocess_exec(*command, path)
    except OSError:
        return False
    try:
        return await running.wait() == 0
    finally:
        await _terminate(running)


async def _terminate(process: Process) -> None:
    """Whoever is told to end takes the editor along, which would keep the terminal."""
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
