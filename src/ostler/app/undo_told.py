"""Tells a session that nobody plays what a person took back of it, so that its model does not build on what is gone."""

from collections.abc import Callable, Sequence
from pathlib import Path

from ostler.app.sessions import session_store
from ostler.app.trusting import settings_for_looking
from ostler.session.mending import remind
from ostler.settings.home import project_id
from ostler.vocabulary.errors import JournalError, UsageError

MOST_NAMED = 20
_DONE = {
    "undo": "The user took back what turn {turn} of yours changed; these paths are as they were before it: {paths}",
    "redo": "The user did again what turn {turn} of yours had changed; these paths are as it left them: {paths}",
}


def tell_session(cwd: Path, direction: str, checkpoint: str, paths: Sequence[str], say: Callable[[str], None]) -> None:
    """And the person, if something keeps it from being told; a turn of no kept session is nobody's to be told."""
    session_id, _, turn = checkpoint.partition("/")
    try:
        store = session_store(settings_for_looking(cwd, say))
    except UsageError as error:  # the person's own settings are broken; what was taken back stays so
        say(f"its model is not told: {error.fault.message}")
        return
    try:
        place = store.place(project_id(cwd), session_id)
        if not place.journal.exists():
            return
        journal = store.open(place)
    except UsageError:
        return
    except JournalError as error:
        say(f"its model is not told: {error.fault.message}")
        return
    try:
        remind(journal, _text(direction, turn, paths))
    finally:
        journal.close()


def _text(direction: str, turn: str, paths: Sequence[str]) -> str:
    more = f" and {len(paths) - MOST_NAMED} more" if len(paths) > MOST_NAMED else ""
    told = _DONE[direction].format(turn=turn, paths=", ".join(paths[:MOST_NAMED]) + more)
    return f"{told}. Look at them again before you rely on what they held."
