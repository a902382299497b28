"""`todos.json`: the session's plan as it stands, for people and programs beside us."""

from collections import Counter
from pathlib import Path

import msgspec

from ostler.journal.counting import Counting, last
from ostler.journal.meta import write_whole
from ostler.vocabulary.events import Envelope, Reverted, TodosChanged
from ostler.vocabulary.seams import Past
from ostler.vocabulary.tools import Todo

NAME = "todos.json"


class TodosFile:
    """Written whole whenever the plan changes."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        self._past: Past

    def catch_up(self, past: Past) -> None:
        self._past = past

    def take(self, envelope: Envelope) -> None:
        if isinstance(envelope.event, TodosChanged):
            self._write(envelope.event.items)
        elif isinstance(envelope.event, Reverted):
            self._write(todos_of(Counting(self._past)))

    def close(self) -> None:
        """Nothing is left to write."""

    def _write(self, items: tuple[Todo, ...]) -> None:
        counts = Counter(item.status for item in items)
        stats = {"total": len(items), **{name: counts[name] for name in ("pending", "in_progress", "completed")}}
        write_whole(self._path, {"items": msgspec.to_builtins(items), "stats": stats})


def todos_of(counting: Past) -> tuple[Todo, ...]:
    """The plan, by the records that count."""
    event = last(counting, "todos_changed")
    return event.items if isinstance(event, TodosChanged) else ()
