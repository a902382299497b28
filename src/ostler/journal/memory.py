"""A journal that is gone with the process: `--ephemeral`, tests, child probes."""

from collections.abc import Iterable

from ostler.journal.records import ListPast
from ostler.vocabulary.events import Envelope


class MemoryJournal:
    """The records of one session, in a list."""

    def __init__(self, session_id: str, past: Iterable[Envelope] = ()) -> None:
        self.session_id = session_id
        self.damage: list[str] = []
        self._past = ListPast(past)

    @property
    def records(self) -> list[Envelope]:
        return self._past.records

    def past(self) -> ListPast:
        return self._past

    def append(self, envelope: Envelope) -> None:
        self._past.append(envelope)

    def sync(self) -> None:
        """Nothing here outlives the process."""

    def close(self) -> None:
        """Nothing to give back."""

    def drop(self) -> None:
        """It goes with the process."""
