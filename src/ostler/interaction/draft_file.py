"""Writes the typed text to a temporary file, lets the user edit it, and reads it back."""

import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from tempfile import mkstemp

from ostler.core.errors import UsageError

MAX_LENGTH = 16 * 1024 * 1024


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
