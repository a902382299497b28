"""Stores earlier prompts on disk and drops the oldest when the file grows too large."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ostler.interaction.pastes import MAX_LINE_LENGTH, longest_line_length

if TYPE_CHECKING:
    from prompt_toolkit.history import History

MAX_PROMPT_LENGTH = 100_000
MAX_FILE_BYTES, BYTES_AFTER_TRIM = 2_000_000, 1_000_000


def is_recallable(text: str) -> bool:
    """Return whether a prompt is short enough to be edited again."""
    return len(text) <= MAX_PROMPT_LENGTH and longest_line_length(text) <= MAX_LINE_LENGTH


def open_history(path: Path | None) -> "History":
    """Return the history of a file or, without a path, of this run only."""
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    if path is None:
        return InMemoryHistory()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.touch(mode=0o600)
    if path.stat().st_size > MAX_FILE_BYTES:
        _truncate_file(path)
    return FileHistory(path)


def _truncate_file(path: Path) -> None:
    """Keep the newest prompts. The file is replaced atomically."""
    data = path.read_bytes()[-BYTES_AFTER_TRIM:]
    start = data.find(b"\n# ")
    new = path.with_name(f"{path.name}.new")
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(data[start:] if start >= 0 else b"")
    new.rename(path)
