"""Long pastes: in the editor each is a mark, quick to draw whatever it stands for; what is sent has them whole."""

import re

LONGEST = 50_000
LONGEST_LINE = 2000
_MARK = re.compile(r"\[pasted (\d{1,9}): [\d,]+ lines?, [\d,]+ characters\]")


class Pastes:
    """What the marks of this run stand for."""

    def __init__(self) -> None:
        self._kept: dict[int, str] = {}

    def fold(self, text: str) -> str:
        """The text, or a mark for it where it is too long to edit."""
        if len(text) <= LONGEST and longest_line(text) <= LONGEST_LINE:
            return text
        number = len(self._kept) + 1
        self._kept[number] = text
        lines = text.removesuffix("\n").count("\n") + 1
        return f"[pasted {number}: {lines:,} line{'s' * (lines > 1)}, {len(text):,} characters]"

    def unfold(self, text: str) -> str:
        """Every mark as what it stands for; what only looks like one stays."""
        return _MARK.sub(lambda mark: self._kept.get(int(mark[1]), mark[0]), text)


def longest_line(text: str) -> int:
    """How long the longest line is."""
    return max(map(len, text.split("\n")))
