"""What can be done to a session that nobody plays: a title, a word to its model, an end to what a crash left open."""

import time
from collections.abc import Callable

from ostler.journal.file import FileJournal
from ostler.session.repair import repair
from ostler.session.state import state_of
from ostler.vocabulary.events import Envelope, Event, Queued, Reminded, Renamed


def rename(journal: FileJournal, title: str) -> None:
    """Keep a title."""
    _writer(journal)(Renamed(title))
    journal.sync()


def remind(journal: FileJournal, text: str) -> None:
    """Keep something for the model to be told when the session goes on."""
    _writer(journal)(Reminded(text))
    journal.sync()


def take_queued(journal: FileJournal) -> tuple[str, ...]:
    """What waited to be sent, which no longer waits there."""
    waited = state_of(journal.past()).queued
    if waited:
        _writer(journal)(Queued())
        journal.sync()
    return waited


def mend(journal: FileJournal) -> list[str]:
    """Finish open calls, asks and turns as events; says what was found and done."""
    told = list(journal.damage)
    state = state_of(journal.past())
    emit = _writer(journal)

    def keep(event: Event) -> None:
        emit(event)
        state.apply(event)
        told.append(f"added {type(event).__name__}")

    repair(state, keep)
    journal.sync()
    return told


def _writer(journal: FileJournal) -> Callable[[Event], None]:
    def emit(event: Event) -> None:
        past = journal.past()
        journal.append(Envelope(past[-1].seq + 1 if len(past) else 1, time.time(), event))

    return emit
