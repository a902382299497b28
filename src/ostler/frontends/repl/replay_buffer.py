"""Collects the transcript of a resumed session and prints only its last lines."""

from collections import deque
from collections.abc import Sequence

from ostler.core.events import Event, Reverted
from ostler.rendering.style import Styler

MAX_LINES = 2000


class ReplayBuffer:
    """Keeps the last lines of the history."""

    def __init__(self, paint: Styler) -> None:
        self._paint = paint
        self._lines: deque[str] = deque(maxlen=MAX_LINES)
        self._count = 0

    def add(self, event: Event, lines: Sequence[str]) -> None:
        if isinstance(event, Reverted):
            lines = [
                *lines,
                self._paint("  ↩ reverted here; part of the output above is no longer in the conversation", "dim"),
            ]
        self._lines.extend(lines)
        self._count += len(lines)

    def flush(self) -> list[str]:
        """Return the lines and empty the buffer."""
        omitted = self._count - len(self._lines)
        head = [self._paint(f"  … {omitted} earlier lines: ostler sessions show", "dim")] if omitted else []
        lines = [*head, *self._lines]
        self._lines.clear()
        self._count = 0
        return lines
