"""Opens the database of `ostler serve`, which has the sessions and accounts of all its users."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ostler.core.accounts import Accounts
from ostler.frontends.server.audit_log import AuditLog
from ostler.journal.log_file import LogFile
from ostler.settings.effective import Settings
from ostler.settings.home import ensure_home
from ostler.storage.sqlite_database import SqliteDatabase

AUDIT_BYTES, AUDIT_FILES = 10_000_000, 9  # of one file; older files that are kept


def server_folder() -> Path:
    """Return the folder of the server's database and logs, in Ostler's home."""
    return ensure_home(os.environ) / "server"


def open_database(path: str = "") -> SqliteDatabase:
    """Open the server's database, by default the one in Ostler's home. Raises `UsageError`."""
    return SqliteDatabase(Path(path) if path else server_folder() / "ostler.db")


def open_audit_log(path: str = "") -> AuditLog:
    """Return the audit log of a server, which is beside its database."""
    file = Path(f"{path}.audit.jsonl") if path else server_folder() / "audit.jsonl"
    return AuditLog(LogFile(file, AUDIT_BYTES, AUDIT_FILES))


@contextmanager
def writing_log(settings: Settings, path: str = "", *secrets: str) -> Iterator[None]:
    """Write the log of a server to a file beside its database."""
    from ostler.storage.logging_setup import add_log_file

    file = Path(f"{path}.log.jsonl") if path else server_folder() / "log.jsonl"
    end = add_log_file(settings, file, ("ostler", "uvicorn.error"), *secrets)
    try:
        yield
    finally:
        end()


@contextmanager
def open_accounts(path: str = "") -> Iterator[Accounts]:
    """Give access to the accounts of a server, which may be running at the same time."""
    from ostler.storage.sqlite_accounts import SqliteAccounts

    database = open_database(path)
    try:
        yield SqliteAccounts(database)
    finally:
        database.close()
