"""What can be done to a session that nobody plays: a title, a word to its model, an end to what a crash left open."""

import time
from collections.abc import Callable

from ostler.core.events import Envelope, Event, Queued, Reminded, Renamed
from ostler.journal.file_journal import FileJournal
from ostler.session.repair import close_unfinished
from ostler.session.state import state_from_records


def rename(journal: FileJournal, title: str) -> None:
    """Keep a title."""
    _writer(journal)(Renamed(title))
    journal.sync()


def add_reminder(journal: FileJournal, text: str) -> None:
    """Keep something for the model to be told when the session goes on."""
    _writer(journal)(Reminded(text))
    journal.sync()


def take_queued(journal: FileJournal) -> tuple[str, ...]:
    """What waited to be sent, which no longer waits there."""
    waited = state_from_records(journal.records()).queued
    if waited:
        _writer(journal)(Queued())
        journal.sync()
    return waited


def repair_journal(journal: FileJournal) -> list[str]:
    """Finish open calls, asks and turns as events; says what was found and done."""
    told = list(journal.damage)
    state = state_from_records(journal.records())
    emit = _writer(journal)

    def keep(event: Event) -> None:
        emit(event)
        state.apply(event)
        told.append(f"added {type(event).__name__}")

    close_unfinished(state, keep)
    journal.sync()
    return told


def _writer(journal: FileJournal) -> Callable[[Event], None]:
    def emit(event: Event) -> None:
        past = journal.records()
        journal.append(Envelope(past[-1].seq + 1 if len(past) else 1, time.time(), event))

    return emit
