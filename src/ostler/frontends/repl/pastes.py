"""Long pastes: in the editor each is a mark, quick to draw whatever it stands for; what is sent has them whole."""

import re

MAX_PASTE_LENGTH = 50_000
MAX_LINE_LENGTH = 2000
_PLACEHOLDER = re.compile(r"\[pasted (\d{1,9}): [\d,]+ lines?, [\d,]+ characters\]")


class PasteStore:
    """What the marks of this run stand for."""

    def __init__(self) -> None:
        self._pastes: dict[int, str] = {}

    def fold(self, text: str) -> str:
        """The text, or a mark for it where it is too long to edit."""
        if len(text) <= MAX_PASTE_LENGTH and longest_line_length(text) <= MAX_LINE_LENGTH:
            return text
        number = len(self._pastes) + 1
        self._pastes[number] = text
        lines = text.removesuffix("\n").count("\n") + 1
        return f"[pasted {number}: {lines:,} line{'s' * (lines > 1)}, {len(text):,} characters]"

    def unfold(self, text: str) -> str:
        """Every mark as what it stands for; what only looks like one stays."""
        return _PLACEHOLDER.sub(lambda mark: self._pastes.get(int(mark[1]), mark[0]), text)


def longest_line_length(text: str) -> int:
    """How long the longest line is."""
    return max(map(len, text.split("\n")))
