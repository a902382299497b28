"""Opens a file, or the typed text in a temporary file, in `VISUAL`, `EDITOR` or a common editor."""

import asyncio
import os
import shlex
import shutil
from asyncio.subprocess import Process
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from tempfile import mkstemp

from ostler.core.errors import UsageError

EXIT_TIMEOUT_SECONDS = 2.0  # time for an editor to restore the terminal
MAX_LENGTH = 16 * 1024 * 1024  # of an edited text
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


async def edit_text(text: str, edit: Callable[[str], Awaitable[bool]]) -> str:
    """Return the text after `edit` changed its file. Raises `UsageError` if that failed."""
    path = _write_temp_file(text)
    try:
        if not await edit(path):
            raise UsageError("the editor failed, so the text is unchanged", hint=_editor_hint())
        return _read_back(path)
    except OSError as error:
        raise UsageError(f"the edited text cannot be read: {error.strerror}") from None
    finally:
        with suppress(OSError):
            os.unlink(path)


def _write_temp_file(text: str) -> str:
    """Write a temporary file that only the user can read, and return its path."""
    try:
        descriptor, path = mkstemp(prefix="prompt-", suffix=".md")
        with open(descriptor, "w", encoding="utf-8", errors="replace", newline="") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"a temporary file cannot be created: {error.strerror}") from None
    return path


def _read_back(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        text = file.read(MAX_LENGTH + 1)
    if len(text) > MAX_LENGTH:
        raise UsageError(f"the edited text is longer than {MAX_LENGTH:,} characters")
    return text.removesuffix("\n")


def _editor_hint() -> str:
    name = next((name for name in ("VISUAL", "EDITOR") if os.environ.get(name)), "")
    return f"check {name}, which is {os.environ[name]!r}" if name else "set EDITOR to your editor"
