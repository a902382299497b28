"""Changes to the journal of a session that is not open: rename, add a reminder, take queued prompts, repair."""

import time
from collections.abc import Callable

from ostler.core.events import Envelope, Event, Queued, Reminded, Renamed
from ostler.core.protocols import Journal
from ostler.session.repair import close_unfinished
from ostler.session.state import state_from_records


def rename(journal: Journal, title: str) -> None:
    """Save a new title."""
    _writer(journal)(Renamed(title))
    journal.sync()


def add_reminder(journal: Journal, text: str) -> None:
    """Save a message that the model gets when the session is resumed."""
    _writer(journal)(Reminded(text))
    journal.sync()


def take_queued(journal: Journal) -> tuple[str, ...]:
    """Return the queued prompts and remove them from the session."""
    queued = state_from_records(journal.records()).queued
    if queued:
        _writer(journal)(Queued())
        journal.sync()
    return queued


def repair_journal(journal: Journal) -> list[str]:
    """Close open calls, requests and turns. Return the damage found and the events added, as texts."""
    report = list(journal.damage)
    state = state_from_records(journal.records())
    emit = _writer(journal)

    def add(event: Event) -> None:
        emit(event)
        state.apply(event)
        report.append(f"added {type(event).__name__}")

    close_unfinished(state, add)
    journal.sync()
    return report


def _writer(journal: Journal) -> Callable[[Event], None]:
    def emit(event: Event) -> None:
        records = journal.records()
        journal.append(Envelope(records[-1].seq + 1 if len(records) else 1, time.time(), event))

    return emit
