"""In-memory journal for `--ephemeral` and tests."""

from collections.abc import Iterable

from ostler.core.events import Envelope
from ostler.journal.records import ListRecords


class MemoryJournal:
    """The records of one session, in a list."""

    def __init__(self, session_id: str, records: Iterable[Envelope] = ()) -> None:
        self.session_id = session_id
        self.damage: list[str] = []
        self._records = ListRecords(records)

    @property
    def envelopes(self) -> list[Envelope]:
        return self._records.envelopes

    def records(self) -> ListRecords:
        return self._records

    def append(self, envelope: Envelope) -> None:
        self._records.append(envelope)

    def sync(self) -> None:
        """Do nothing: nothing is written to disk."""

    def close(self) -> None:
        """Do nothing."""

    def drop(self) -> None:
        """Do nothing: nothing is stored."""
