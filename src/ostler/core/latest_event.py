"""Finds the latest event of a type in the records of a session."""

from ostler.core.events import Event
from ostler.core.protocols import Records


def latest_event(records: Records, event_type: str) -> Event | None:
    """Return the latest event of a type, or None; events of other types are not decoded."""
    index = max(records.indexes_of((event_type,)), default=None)
    return None if index is None else records[index].event
