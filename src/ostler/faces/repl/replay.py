"""What a resumed session brings along: the end of what was said, and where it went back."""

from collections import deque
from collections.abc import Sequence

from ostler.drawing.paint import Paint
from ostler.vocabulary.events import Event, Reverted

MOST_LINES = 2000


class Replay:
    """Gathers the lines of the past, of which only the last are worth printing anew."""

    def __init__(self, paint: Paint) -> None:
        self._paint = paint
        self._lines: deque[str] = deque(maxlen=MOST_LINES)
        self._count = 0

    def take(self, event: Event, lines: Sequence[str]) -> None:
        if isinstance(event, Reverted):
            lines = [*lines, self._paint("  ↩ here the session went back; some of the above no longer counts", "dim")]
        self._lines.extend(lines)
        self._count += len(lines)

    def over(self) -> list[str]:
        """The past is over: its lines, once."""
        left = self._count - len(self._lines)
        head = [self._paint(f"  … {left} earlier lines: ostler sessions show", "dim")] if left else []
        lines = [*head, *self._lines]
        self._lines.clear()
        self._count = 0
        return lines
