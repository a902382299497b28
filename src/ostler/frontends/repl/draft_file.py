"""What is being typed, in the person's own editor: written to a file of theirs, and read back when it is closed."""

import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from tempfile import mkstemp

from ostler.core.errors import UsageError

MAX_LENGTH = 16 * 1024 * 1024


async def edit_text(text: str, edit: Callable[[str], Awaitable[bool]]) -> str:
    """The text as `edit` leaves its file; a `UsageError` tells why it stays as it was."""
    path = _write_temp_file(text)
    try:
        if not await edit(path):
            raise UsageError("your editor could not be run, or gave up: nothing is changed", hint=_editor_hint())
        return _read_back(path)
    except OSError as error:
        raise UsageError(f"what was edited cannot be read: {error.strerror}") from None
    finally:
        with suppress(OSError):
            os.unlink(path)


def _write_temp_file(text: str) -> str:
    """A file of this text that nobody else reads."""
    try:
        descriptor, path = mkstemp(prefix="prompt-", suffix=".md")
        with open(descriptor, "w", encoding="utf-8", errors="replace", newline="") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"there is no place for a file to edit: {error.strerror}") from None
    return path


def _read_back(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        text = file.read(MAX_LENGTH + 1)
    if len(text) > MAX_LENGTH:
        raise UsageError(f"what was edited has more than {MAX_LENGTH:,} characters")
    return text.removesuffix("\n")


def _editor_hint() -> str:
    name = next((name for name in ("VISUAL", "EDITOR") if os.environ.get(name)), "")
    return f"{name} is {os.environ[name]!r}" if name else "set EDITOR to yours"
