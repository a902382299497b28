"""Tells a stored session that the user undid or redid one of its turns."""

from collections.abc import Callable, Sequence
from contextlib import closing

from ostler.core.errors import JournalError, UsageError
from ostler.journal.journal_store import JournalStore
from ostler.session.offline import add_reminder

MAX_PATHS_SHOWN = 20
_TEMPLATES = {
    "undo": "The user undid the file changes of your turn {turn}. Restored paths: {paths}",
    "redo": "The user redid the file changes of your turn {turn}. Changed paths: {paths}",
}


def notify_session(
    open_store: Callable[[], JournalStore],
    project: str,
    direction: str,
    checkpoint: str,
    paths: Sequence[str],
    notify: Callable[[str], None],
) -> None:
    """Add a reminder to the session's journal, or call `notify` if that fails. Unsaved sessions are ignored."""
    session_id, _, turn = checkpoint.partition("/")
    try:
        store = open_store()
    except UsageError as error:  # the user's settings are invalid; the files stay restored
        notify(f"files restored, but the session could not be notified: {error.fault.message}")
        return
    try:
        session = store.session(project, session_id)
        if not session.journal_path.exists():
            return
        journal = store.open(session)
    except UsageError:
        return
    except JournalError as error:
        notify(f"files restored, but the session could not be notified: {error.fault.message}")
        return
    with closing(journal):
        add_reminder(journal, _notice_text(direction, turn, paths))


def _notice_text(direction: str, turn: str, paths: Sequence[str]) -> str:
    more = f" and {len(paths) - MAX_PATHS_SHOWN} more" if len(paths) > MAX_PATHS_SHOWN else ""
    text = _TEMPLATES[direction].format(turn=turn, paths=", ".join(paths[:MAX_PATHS_SHOWN]) + more)
    return f"{text}. Read them again before you rely on their content."
