"""Earlier prompts on disk, over restarts; what grew too large loses its oldest part."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ostler.frontends.repl.pastes import MAX_LINE_LENGTH, longest_line_length

if TYPE_CHECKING:
    from prompt_toolkit.history import History

MAX_PROMPT_LENGTH = 100_000
MAX_FILE_BYTES, KEPT_BYTES = 2_000_000, 1_000_000


def is_recallable(text: str) -> bool:
    """Whether a prompt could be edited when it is called back."""
    return len(text) <= MAX_PROMPT_LENGTH and longest_line_length(text) <= MAX_LINE_LENGTH


def open_history(path: Path | None) -> "History":
    """The prompts of a file, or without one of this run alone."""
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    if path is None:
        return InMemoryHistory()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.touch(mode=0o600)
    if path.stat().st_size > MAX_FILE_BYTES:
        _truncate_file(path)
    return FileHistory(path)


def _truncate_file(path: Path) -> None:
    """Keep the end, from where a prompt begins; the old file stands until the new one is whole."""
    data = path.read_bytes()[-KEPT_BYTES:]
    begin = data.find(b"\n# ")
    draft = path.with_name(f"{path.name}.new")
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(data[begin:] if begin >= 0 else b"")
    draft.rename(path)
