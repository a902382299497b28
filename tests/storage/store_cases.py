"""The implementations of `Store`, for tests that all of them must pass."""

from pathlib import Path

from ostler.core.events import Envelope, MessageDone, SessionOpened, TurnEnded, TurnStarted
from ostler.core.message import Message
from ostler.core.prompt import Prompt, TextContent
from ostler.journal.log_file import CURRENT_SESSION
from ostler.settings.effective import Settings
from ostler.settings.home import project_id
from ostler.storage.session_stores import EphemeralStore, FileStore
from ostler.storage.sqlite_accounts import SqliteAccounts
from ostler.storage.sqlite_database import SqliteDatabase
from ostler.storage.sqlite_store import SqliteSessions

ROOT = "/work"
PROJECT = project_id(Path(ROOT))


class FileCase:
    """A folder for each session."""

    keeps = True

    def __init__(self, folder: Path, monkeypatch) -> None:
        monkeypatch.setenv("OSTLER_HOME", str(folder / "home"))

    def connect(self):
        """Return a store as another process would open it."""
        return FileStore(Settings.from_layers(()))

    def close(self):
        CURRENT_SESSION.set("")  # the log of a session sets it


class EphemeralCase:
    """Sessions that are not saved."""

    keeps = False

    def __init__(self, folder: Path, monkeypatch) -> None:
        pass

    def connect(self):
        return EphemeralStore()

    def close(self):
        pass


class SqliteCase:
    """The database of a server, for one of its users."""

    keeps = True

    def __init__(self, folder: Path, monkeypatch) -> None:
        self.path = folder / "server" / "ostler.db"
        self._open: list[SqliteDatabase] = []

    def sessions(self):
        self._open.append(SqliteDatabase(self.path))
        return SqliteSessions(self._open[-1])

    def connect(self, owner="alice"):
        return self.sessions().of(owner)

    def accounts(self, clock):
        """Return the accounts as another process would see them."""
        self._open.append(SqliteDatabase(self.path))
        return SqliteAccounts(self._open[-1], clock)

    def pretend_dead(self, store):
        """Make the process of a store look as if it had ended, like one that was suspended for a long time."""
        mark = store._database.mark
        (mark._folder / mark.name).unlink()

    def close(self):
        for database in self._open:
            database.close()


CASES = {"file": FileCase, "ephemeral": EphemeralCase, "sqlite": SqliteCase}
HOSTED_CASES = {"sqlite": SqliteCase}  # what a server can use; each has sessions of several users, and accounts


def events_of_a_turn(text="find the parser", answer="It is in parser.py.", number=1):
    return [
        TurnStarted(f"turn-{number}", Prompt(f"p{number}", (TextContent(text),))),
        MessageDone(Message(f"m{number}", (TextContent(answer),))),
        TurnEnded(f"turn-{number}", "done"),
    ]


def append_all(journal, events, time=1e9):
    """Append events after the last record."""
    start = journal.records()[-1].seq if len(journal.records()) else 0
    for seq, event in enumerate(events, start + 1):
        journal.append(Envelope(seq, time + seq, event))
    journal.sync()


def save(store, session_id="", events=None, project=PROJECT, root=ROOT, time=1e9):
    """Save a session with a turn and return its id."""
    journal = store.open(project, session_id)
    opened = [SessionOpened(journal.session_id, root, "engine", "1")]
    append_all(journal, [*opened, *(events_of_a_turn() if events is None else events)], time)
    journal.close()
    return journal.session_id
