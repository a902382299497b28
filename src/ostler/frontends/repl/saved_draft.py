"""The typed text while a dialog uses the editor."""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prompt_toolkit.document import Document


class SavedDraft:
    """A text with a cursor; text that was typed at a dialog, but not meant for it, is added at the cursor."""

    def __init__(self, before: str = "") -> None:
        self._before = before
        self.after = ""  # text after the cursor

    def __bool__(self) -> bool:
        return bool(self.text)

    @property
    def text(self) -> str:
        return self._before + self.after

    def save(self, document: "Document", unfold: Callable[[str], str]) -> None:
        """Save a text with its cursor, or add it if another text was saved before; `unfold` restores long pastes."""
        text, after = unfold(document.text), unfold(document.text_after_cursor)
        if self or not text.endswith(after):  # the cursor is in a placeholder
            self.add(text)
        else:
            self._before, self.after = text[: len(text) - len(after)], after

    def add(self, text: str) -> None:
        """Insert text at the cursor."""
        self._before += text

    def delete_before_cursor(self) -> None:
        """Delete one character before the cursor."""
        self._before = self._before[:-1]
