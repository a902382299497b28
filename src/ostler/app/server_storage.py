"""Opens the database of `ostler serve`, which has the sessions and accounts of all its users."""

import logging
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec

from ostler.core.accounts import Accounts
from ostler.frontends.server.audit_log import AuditLog
from ostler.journal.log_file import LogFile
from ostler.journal.session_meta import write_atomically
from ostler.settings.effective import Settings
from ostler.settings.home import ensure_home
from ostler.storage.sqlite_database import SqliteDatabase

AUDIT_BYTES, AUDIT_FILES = 10_000_000, 9  # of one file; older files that are kept


class ServerPlace(msgspec.Struct, frozen=True):
    """Where a server was reached when it started last: URL, own port, and the SHA-256 of its certificate."""

    url: str = ""
    port: int = 0
    fingerprint: str = ""


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


def _address_file(path: str) -> Path:
    return Path(f"{path}.address.json") if path else server_folder() / "address.json"


def store_address(place: ServerPlace, path: str = "") -> None:
    """Store where a server is, for commands that make pairing lines."""
    write_atomically(_address_file(path), place)


def read_address(path: str = "") -> ServerPlace:
    """Return where the server is, as far as it is known."""
    try:
        return msgspec.json.decode(_address_file(path).read_bytes(), type=ServerPlace)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return ServerPlace()


@contextmanager
def writing_log(settings: Settings, path: str = "", *secrets: str) -> Iterator[None]:
    """Write the log of a server to a file beside its database."""
    from ostler.storage.logging_setup import add_log_file

    file = Path(f"{path}.log.jsonl") if path else server_folder() / "log.jsonl"
    end = add_log_file(settings, file, ("ostler", "uvicorn.error"), *secrets)
    uvicorn = logging.getLogger("uvicorn.error")
    uvicorn.setLevel(max(uvicorn.level, logging.WARNING))  # the audit log has its connections
    try:
        yield
    finally:
        end()


@contextmanager
def open_accounts(path: str = "") -> Iterator[Accounts]:
    """Give access to the accounts of a server, which may be running at the same time."""
    from ostler.storage.sqlite_accounts import SqliteAccounts

    with closing(open_database(path)) as database:
        yield SqliteAccounts(database)
