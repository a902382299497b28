"""What a resumed session brings along: the end of what was said, and where it went back."""

from collections import deque
from collections.abc import Sequence

from ostler.core.events import Event, Reverted
from ostler.rendering.style import Styler

MAX_LINES = 2000


class ReplayBuffer:
    """Gathers the lines of the past, of which only the last are worth printing anew."""

    def __init__(self, paint: Styler) -> None:
        self._paint = paint
        self._lines: deque[str] = deque(maxlen=MAX_LINES)
        self._count = 0

    def add(self, event: Event, lines: Sequence[str]) -> None:
        if isinstance(event, Reverted):
            lines = [*lines, self._paint("  ↩ here the session went back; some of the above no longer counts", "dim")]
        self._lines.extend(lines)
        self._count += len(lines)

    def flush(self) -> list[str]:
        """The past is over: its lines, once."""
        left = self._count - len(self._lines)
        head = [self._paint(f"  … {left} earlier lines: ostler sessions show", "dim")] if left else []
        lines = [*head, *self._lines]
        self._lines.clear()
        self._count = 0
        return lines
