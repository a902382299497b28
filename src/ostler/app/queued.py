"""Finds what waited to be sent when a process was killed: it stands in the journals of this workspace."""

import os

from ostler.journal.file import read_past
from ostler.journal.lock import busy
from ostler.journal.store import Place, Store
from ostler.session.mending import take_queued
from ostler.vocabulary.errors import OstlerError
from ostler.vocabulary.events import Queued

# Whoever was killed wrote to one of the newest sessions.
RECENT = 5
# What waits was told in the turn that was cut, so not far from the end; a prompt is not held up by a long past.
LOOKED_AT = 4 * 1024 * 1024
_MARK = b'"queued"'


def left_behind(store: Store, project: str) -> str:
    """What sessions that nobody plays any more had waiting; it is taken, so nobody else gets it."""
    newest = sorted(store.places(project), key=_written, reverse=True)[:RECENT]
    texts: list[str] = []
    for place in reversed(newest):
        if not busy(place.folder) and _waits(place):
            texts += _taken(store, place)
    return "\n".join(texts)


def _waits(place: Place) -> bool:
    """Whether the last word on what waits there is that something does; most journals have none."""
    try:
        with place.journal.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - LOOKED_AT))
            if _MARK not in file.read():
                return False
        past = read_past(place.journal)
    except (OSError, OstlerError):
        return False
    last = next((at for at in reversed(range(len(past))) if past.kind(at) == "queued"), None)
    event = past[last].event if last is not None else None
    return isinstance(event, Queued) and bool(event.texts)


def _taken(store: Store, place: Place) -> tuple[str, ...]:
    try:
        journal = store.open(place)
    except OstlerError:
        return ()
    try:
        return take_queued(journal)
    except OstlerError:
        return ()
    finally:
        journal.close()


def _written(place: Place) -> int:
    try:
        return os.stat(place.journal).st_mtime_ns
    except OSError:
        return 0
