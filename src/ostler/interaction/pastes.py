"""Shows long pastes as a placeholder in the editor and restores them when the prompt is sent."""

import re

MAX_PASTE_LENGTH = 50_000
MAX_LINE_LENGTH = 2000
_PLACEHOLDER = re.compile(r"\[pasted (\d{1,9}): [\d,]+ lines?, [\d,]+ characters\]")


class PasteStore:
    """The pasted texts of this run, by the number of their placeholder."""

    def __init__(self, max_lines: int = MAX_PASTE_LENGTH) -> None:
        """With more than `max_lines`, a paste is folded, too."""
        self._max_lines = max_lines
        self._pastes: dict[int, str] = {}
        self._with_mentions: list[str] = []

    def add(self, text: str) -> str:
        """Remember a pasted text that may mention files or agents, and return it folded."""
        if "@" in text and text not in self._with_mentions:
            self._with_mentions.append(text)
        return self.fold(text)

    @property
    def text_with_mentions(self) -> str:
        """Everything that was pasted in this run and may contain mentions."""
        return "\n".join(self._with_mentions)

    def fold(self, text: str) -> str:
        """Return the text, or a placeholder if it is too long to edit."""
        is_short = len(text) <= MAX_PASTE_LENGTH and longest_line_length(text) <= MAX_LINE_LENGTH
        if is_short and text.count("\n") < self._max_lines:
            return text
        number = len(self._pastes) + 1
        self._pastes[number] = text
        lines = text.removesuffix("\n").count("\n") + 1
        return f"[pasted {number}: {lines:,} line{'s' * (lines > 1)}, {len(text):,} characters]"

    def expand(self, text: str) -> str:
        """Replace all placeholders by their texts; unknown placeholders stay."""
        return _PLACEHOLDER.sub(lambda match: self._pastes.get(int(match[1]), match[0]), text)


def longest_line_length(text: str) -> int:
    return max(map(len, text.split("\n")))
