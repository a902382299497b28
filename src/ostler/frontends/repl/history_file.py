"""Opens the history of earlier prompts for the line editor."""

from pathlib import Path
from typing import TYPE_CHECKING

from ostler.interaction.prompt_history import prepare_history_file

if TYPE_CHECKING:
    from prompt_toolkit.history import History


def open_history(path: Path | None) -> "History":
    """Return the history of a file or, without a path, of this run only."""
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    if path is None:
        return InMemoryHistory()
    prepare_history_file(path)
    return FileHistory(path)
