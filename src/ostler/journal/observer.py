"""Whatever is made from a journal while it grows: a history to read, a summary, a log."""

from typing import Protocol

from ostler.core.events import Envelope
from ostler.core.protocols import Records


class JournalObserver(Protocol):
    """What it makes can be made again, so nothing that befalls it may stop a session."""

    def catch_up(self, records: Records) -> None:
        """The journal was opened: make up for what an earlier process did not get to."""

    def on_record(self, envelope: Envelope) -> None:
        """A record was written."""

    def close(self) -> None: ...
