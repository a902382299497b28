"""SQLite schema of the session index; the file can be deleted at any time."""

import sqlite3
from pathlib import Path

SCHEMA_VERSION = 1
TABLES = """
CREATE TABLE sessions(key INTEGER PRIMARY KEY, project TEXT, id TEXT, size INT, written INT, file INT, offset INT,
                      meta BLOB,
                      UNIQUE(project, id));
CREATE TABLE messages(number INTEGER PRIMARY KEY, session INT, seq INT, time REAL, role TEXT);
CREATE INDEX messages_of ON messages(session);
CREATE VIRTUAL TABLE words USING fts5(text, tokenize = "unicode61 remove_diacritics 2");
CREATE TABLE usage(session INT, day TEXT, model TEXT, calls INT, tokens_in INT, tokens_out INT, tokens_cached INT,
                   cost REAL, unpriced INT);
CREATE INDEX usage_of ON usage(session);
"""


def open_index(path: Path) -> sqlite3.Connection:
    """Open the index. A damaged or outdated one is recreated; without a writable file it is kept in memory."""
    try:
        return _open_file(path)
    except OSError:
        return _open(":memory:")
    except sqlite3.DatabaseError:
        path.unlink(missing_ok=True)
    try:
        return _open_file(path)
    except (sqlite3.DatabaseError, OSError):
        return _open(":memory:")


def _open_file(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.touch(mode=0o600)
    return _open(str(path))


def _open(name: str) -> sqlite3.Connection:
    db = sqlite3.connect(name, timeout=10, isolation_level=None)
    try:
        db.execute("PRAGMA synchronous = OFF")  # a crash may damage the index; it can be rebuilt
        db.execute("PRAGMA journal_mode = MEMORY")
        db.execute("PRAGMA secure_delete = ON")
        db.execute("BEGIN IMMEDIATE")
        (version,) = db.execute("PRAGMA user_version").fetchone()
        if version != SCHEMA_VERSION:
            _create_tables(db)
        db.execute("COMMIT")
    except BaseException:
        db.close()
        raise
    return db


def _create_tables(db: sqlite3.Connection) -> None:
    for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        if not name.startswith(("words_", "sqlite_")):
            db.execute(f'DROP TABLE IF EXISTS "{name}"')
    for statement in TABLES.split(";\n"):
        db.execute(statement)
    db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
