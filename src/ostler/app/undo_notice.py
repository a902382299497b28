"""Tells a session that nobody plays what a person took back of it, so that its model does not build on what is gone."""

from collections.abc import Callable, Sequence
from pathlib import Path

from ostler.app.session_storage import session_store
from ostler.app.trusted_settings import load_settings_leniently
from ostler.core.errors import JournalError, UsageError
from ostler.session.offline import add_reminder
from ostler.settings.home import project_id

MAX_PATHS_SHOWN = 20
_TEMPLATES = {
    "undo": "The user took back what turn {turn} of yours changed; these paths are as they were before it: {paths}",
    "redo": "The user did again what turn {turn} of yours had changed; these paths are as it left them: {paths}",
}


def notify_session(
    cwd: Path, direction: str, checkpoint: str, paths: Sequence[str], notify: Callable[[str], None]
) -> None:
    """And the person, if something keeps it from being told; a turn of no kept session is nobody's to be told."""
    session_id, _, turn = checkpoint.partition("/")
    try:
        store = session_store(load_settings_leniently(cwd, notify))
    except UsageError as error:  # the person's own settings are broken; what was taken back stays so
        notify(f"its model is not told: {error.fault.message}")
        return
    try:
        place = store.session(project_id(cwd), session_id)
        if not place.journal_path.exists():
            return
        journal = store.open(place)
    except UsageError:
        return
    except JournalError as error:
        notify(f"its model is not told: {error.fault.message}")
        return
    try:
        add_reminder(journal, _notice_text(direction, turn, paths))
    finally:
        journal.close()


def _notice_text(direction: str, turn: str, paths: Sequence[str]) -> str:
    more = f" and {len(paths) - MAX_PATHS_SHOWN} more" if len(paths) > MAX_PATHS_SHOWN else ""
    told = _TEMPLATES[direction].format(turn=turn, paths=", ".join(paths[:MAX_PATHS_SHOWN]) + more)
    return f"{told}. Look at them again before you rely on what they held."
