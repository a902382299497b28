"""Copies parts of the transcript to the clipboard of the terminal, or to a file if they are too long for it."""

import base64
import os
import re
from collections.abc import Callable, Mapping
from tempfile import NamedTemporaryFile

from ostler.frontends.tui.multiplexers import pass_through
from ostler.frontends.tui.transcript.view import TranscriptView
from ostler.rendering.screen_blocks import copyable_text
from ostler.session.transcript import TextBlock
from ostler.text.sanitise import sanitise

MAX_BYTES = 74_000  # of the encoded text; many terminals ignore more
_CODE_BLOCK = re.compile(r"^ {0,8}(`{3,}|~{3,})[^\n]*\n(.*?)(?:^ {0,8}\1|\Z)", re.MULTILINE | re.DOTALL)


class TranscriptCopier:
    """Copies the last answer, its code blocks or everything. `write` writes to the terminal, `note` tells the user."""

    def __init__(self, view: TranscriptView, write: Callable[[str], None], note: Callable[[str], None]) -> None:
        self._view = view
        self._write = write
        self._note = note
        self._code_index = 0

    def copy_answer(self) -> None:
        """Copy the selected block, or the last answer."""
        self._code_index = 0
        self._copy(self._last_answer(), "the answer" if self._view.selected is None else "the selected block")

    def copy_code(self) -> None:
        """Copy the last code block of the answer; the next time, the one before it."""
        blocks = [match[2] for match in _CODE_BLOCK.finditer(self._last_answer())]
        if not blocks:
            self._note("there is no code block")
            return
        self._code_index = self._code_index % len(blocks) + 1
        self._copy(blocks[-self._code_index], "the code block")

    def copy_all(self) -> None:
        model = self._view.model
        texts = (copyable_text(model.blocks(index)) for index in range(len(model.entries)))
        self._copy("\n\n".join(filter(None, texts)), "the conversation")

    def copy_selection(self, text: str) -> None:
        """Copy text that was selected with the mouse."""
        self._copy(text, "the selected text")

    def _last_answer(self) -> str:
        model = self._view.model
        if self._view.selected is not None:
            return copyable_text(model.blocks(self._view.selected))
        for index in reversed(range(len(model.entries))):
            if any(isinstance(block, TextBlock) for block in model.blocks(index)):
                return copyable_text([b for b in model.blocks(index) if isinstance(b, TextBlock)])
        return ""

    def _copy(self, text: str, name: str) -> None:
        if not text:
            self._note("there is nothing to copy")
            return
        if sequence := clipboard_sequence(sanitise(text), os.environ):
            self._write(sequence)
            self._note(f"copied {name} ({len(text):,} characters)")
            return
        try:
            with NamedTemporaryFile("wb", prefix="ostler-copy-", suffix=".md", delete=False) as file:
                file.write(text.encode(errors="replace"))
        except OSError as error:
            self._note(f"too long for the clipboard, and no file can be written: {error.strerror}")
        else:
            self._note(f"too long for the clipboard; written to {file.name}")


def clipboard_sequence(text: str, env: Mapping[str, str]) -> str:
    """Return the escape sequence that copies the text with OSC 52, or an empty string if it is too long."""
    encoded = base64.b64encode(text.encode(errors="replace")).decode()
    return pass_through(f"\x1b]52;c;{encoded}\x07", env) if len(encoded) <= MAX_BYTES else ""
