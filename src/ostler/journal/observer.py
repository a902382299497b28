"""Protocol for files and logs that are derived from a journal while it grows."""

from typing import Protocol

from ostler.core.events import Envelope
from ostler.core.session_view import Records


class JournalObserver(Protocol):
    """Receives a journal's records. Its output can be rebuilt, so its failures must not stop the session."""

    def catch_up(self, records: Records) -> None:
        """Called when the journal is opened; handle the records that an earlier process missed."""

    def on_record(self, envelope: Envelope) -> None:
        """Called after a record was written."""

    def close(self) -> None: ...
