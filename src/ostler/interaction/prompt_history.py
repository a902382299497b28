"""Stores earlier prompts on disk and drops the oldest when the file grows too large.

The line client uses the same format: a comment with the time, then a `+` before each line.
"""

import os
from datetime import datetime
from pathlib import Path

from ostler.interaction.pastes import MAX_LINE_LENGTH, longest_line_length

MAX_PROMPT_LENGTH = 100_000
MAX_FILE_BYTES, BYTES_AFTER_TRIM = 2_000_000, 1_000_000


def is_recallable(text: str) -> bool:
    """Return whether a prompt is short enough to be edited again."""
    return len(text) <= MAX_PROMPT_LENGTH and longest_line_length(text) <= MAX_LINE_LENGTH


def prepare_history_file(path: Path) -> None:
    """Create the file if necessary, readable only by the user, and drop the oldest prompts of a large one."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.touch(mode=0o600)
    if path.stat().st_size > MAX_FILE_BYTES:
        _truncate_file(path)


class PromptHistory:
    """The earlier prompts, the newest last, and which of them is being edited."""

    def __init__(self, path: Path | None) -> None:
        """Without a path, only prompts of this run are known."""
        self._path = path
        self._prompts: list[str] | None = None
        self._position = 0  # of the shown prompt; the number of prompts if it is the draft
        self._draft = ""

    def add(self, text: str) -> None:
        """Add a prompt, unless it is the same as the last one."""
        prompts = self.prompts
        if not prompts or prompts[-1] != text:
            prompts.append(text)
            self._append_to_file(text)
        self.reset()

    def reset(self) -> None:
        """Start again at the newest prompt."""
        self._position, self._draft = len(self.prompts), ""

    def previous(self, text: str) -> str | None:
        """Return the prompt before the shown one, or None if there is none. `text` is what is shown now."""
        prompts = self.prompts
        if self._position == 0:
            return None
        if self._position >= len(prompts):
            self._draft, self._position = text, len(prompts)
        self._position -= 1
        return prompts[self._position]

    def next(self) -> str | None:
        """Return the prompt after the shown one, at last the draft, or None if the draft is shown."""
        prompts = self.prompts
        if self._position >= len(prompts):
            return None
        self._position += 1
        return prompts[self._position] if self._position < len(prompts) else self._draft

    @property
    def prompts(self) -> list[str]:
        """All earlier prompts, the newest last; they are read at the first use."""
        if self._prompts is None:
            self._prompts = _read_prompts(self._path) if self._path else []
            self._position = len(self._prompts)
        return self._prompts

    def _append_to_file(self, text: str) -> None:
        if self._path is None:
            return
        lines = "".join(f"+{line}\n" for line in text.split("\n"))
        with open(self._path, "ab") as file:
            file.write(f"\n# {datetime.now()}\n{lines}".encode(errors="replace"))


def _read_prompts(path: Path) -> list[str]:
    try:
        prepare_history_file(path)
        text = path.read_text("utf-8", errors="replace")
    except OSError:
        return []
    prompts: list[str] = []
    lines: list[str] = []
    for line in (*text.split("\n"), ""):
        if line.startswith("+"):
            lines.append(line[1:])
        elif lines:
            prompts.append("\n".join(lines))
            lines = []
    return prompts


def _truncate_file(path: Path) -> None:
    """Keep the newest prompts. The file is replaced atomically."""
    data = path.read_bytes()[-BYTES_AFTER_TRIM:]
    start = data.find(b"\n# ")
    new = path.with_name(f"{path.name}.new")
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(data[start:] if start >= 0 else b"")
    new.rename(path)
