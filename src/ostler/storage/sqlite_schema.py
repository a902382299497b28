"""The tables of the SQLite database, and how an older database is brought up to date."""

import sqlite3

from ostler.core.errors import UsageError

_SESSIONS = """
CREATE TABLE sessions(
  key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, owner TEXT NOT NULL, project TEXT NOT NULL,
  root TEXT NOT NULL DEFAULT '', manifest BLOB, meta BLOB NOT NULL, is_child INTEGER NOT NULL DEFAULT 0,
  turns INTEGER NOT NULL DEFAULT 0, open_turn TEXT NOT NULL DEFAULT '', changed REAL NOT NULL,
  last_seq INTEGER NOT NULL DEFAULT 0, epoch INTEGER NOT NULL DEFAULT 0, holder TEXT NOT NULL DEFAULT '');
CREATE INDEX sessions_of_owner ON sessions(owner, changed);
CREATE TABLE records(
  session INTEGER NOT NULL REFERENCES sessions(key) ON DELETE CASCADE, seq INTEGER NOT NULL, kind TEXT NOT NULL,
  call_id TEXT, line BLOB NOT NULL, PRIMARY KEY(session, seq));
CREATE TABLE messages(
  number INTEGER PRIMARY KEY, session INTEGER NOT NULL REFERENCES sessions(key) ON DELETE CASCADE);
CREATE INDEX messages_of_session ON messages(session);
CREATE VIRTUAL TABLE words USING fts5(text, tokenize = "unicode61 remove_diacritics 2");
"""
_ACCOUNTS = """
CREATE TABLE users(name TEXT PRIMARY KEY, created REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE tokens(
  id TEXT PRIMARY KEY, user TEXT NOT NULL REFERENCES users(name), hash BLOB NOT NULL, scopes TEXT NOT NULL,
  label TEXT NOT NULL, created REAL NOT NULL, expires REAL NOT NULL, revoked REAL NOT NULL DEFAULT 0,
  used REAL NOT NULL DEFAULT 0) WITHOUT ROWID;
CREATE TABLE pairings(
  id TEXT PRIMARY KEY, user TEXT NOT NULL REFERENCES users(name), hash BLOB NOT NULL, expires REAL NOT NULL,
  token_lifetime REAL NOT NULL, attempts INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
"""
_WAITING = "ALTER TABLE sessions ADD COLUMN waiting INTEGER NOT NULL DEFAULT 0"
_LIMITS = "ALTER TABLE users ADD COLUMN limits BLOB NOT NULL DEFAULT x'7b7d'"  # {}
# The n-th script makes schema n; a published script is never changed.
MIGRATIONS = (_SESSIONS, _ACCOUNTS, _WAITING, _LIMITS)


def migrate(db: sqlite3.Connection, name: str) -> None:
    """Bring the tables up to date. Raises `UsageError` if the database belongs to a newer version of Ostler."""
    db.execute("BEGIN IMMEDIATE")
    try:
        version = _read_version(db)
        if version > len(MIGRATIONS):
            raise UsageError(
                f"{name} has schema {version}, and this version of Ostler knows up to {len(MIGRATIONS)}",
                hint="update Ostler",
            )
        for script in MIGRATIONS[version:]:
            for statement in script.split(";\n"):
                if statement.strip():
                    db.execute(statement)
        db.execute("UPDATE schema_version SET version = ?", [len(MIGRATIONS)])
        db.execute("COMMIT")
    except BaseException:
        db.execute("ROLLBACK")
        raise


def _read_version(db: sqlite3.Connection) -> int:
    db.execute("CREATE TABLE IF NOT EXISTS schema_version(version INTEGER NOT NULL)")
    row = db.execute("SELECT version FROM schema_version").fetchone()
    if row is None:
        db.execute("INSERT INTO schema_version VALUES (0)")
    return int(row[0]) if row else 0
