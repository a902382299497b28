"""Writes `todos.json`: the current plan of a session."""

from collections import Counter
from pathlib import Path

import msgspec

from ostler.core.events import Envelope, Reverted, TodosChanged
from ostler.core.session_view import Records, latest_event
from ostler.core.tools import Todo
from ostler.journal.active_records import ActiveRecords
from ostler.journal.session_meta import write_atomically

TODOS_NAME = "todos.json"


class TodosFile:
    """Rewrites `todos.json` whenever the plan changes."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / TODOS_NAME
        self._records: Records

    def catch_up(self, records: Records) -> None:
        self._records = records

    def on_record(self, envelope: Envelope) -> None:
        if isinstance(envelope.event, TodosChanged):
            self._write(envelope.event.items)
        elif isinstance(envelope.event, Reverted):
            self._write(current_todos(ActiveRecords(self._records)))

    def close(self) -> None:
        """Do nothing: the file is already up to date."""

    def _write(self, items: tuple[Todo, ...]) -> None:
        counts = Counter(item.status for item in items)
        stats = {"total": len(items), **{name: counts[name] for name in ("pending", "in_progress", "completed")}}
        write_atomically(self._path, {"items": msgspec.to_builtins(items), "stats": stats})


def current_todos(records: Records) -> tuple[Todo, ...]:
    """Return the plan according to these records."""
    event = latest_event(records, "todos_changed")
    return event.items if isinstance(event, TodosChanged) else ()
