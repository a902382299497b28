"""The full-text index of the messages in the database."""

import sqlite3
from collections.abc import Iterator, Sequence

from ostler.core.events import Envelope, PrefixBuilt, Renamed
from ostler.journal.conversation import CONVERSATION_TYPES, ConversationReader
from ostler.journal.records import event_type_of
from ostler.journal.search_text import searchable_text, split_cjk, to_fts_query


def add_words(db: sqlite3.Connection, key: int, envelope: Envelope, conversation: ConversationReader) -> None:
    """Index the text of a record, if it is a message or a title."""
    if text := _text_of(envelope, conversation):
        cursor = db.execute("INSERT INTO messages(session) VALUES (?)", [key])
        db.execute("INSERT INTO words(rowid, text) VALUES (?, ?)", [cursor.lastrowid, text])


def remove_words(db: sqlite3.Connection, keys: Sequence[int]) -> None:
    """Remove all traces of some sessions' texts."""
    for key in keys:
        db.execute("DELETE FROM words WHERE rowid IN (SELECT number FROM messages WHERE session = ?)", [key])
    db.execute("INSERT INTO words(words) VALUES ('optimize')")  # deleted words would otherwise stay in the file


def find_words(db: sqlite3.Connection, text: str, where: str, values: Sequence[object], limit: int) -> list[int]:
    """Return the sessions with all words in one message, latest first, then those that match by prefix."""
    found: dict[int, None] = {}
    for terms in (to_fts_query(text), to_fts_query(text, match_prefixes=True)):
        if terms:
            for key in _find(db, terms, where, values):
                found.setdefault(key)
                if len(found) >= limit:
                    return list(found)
    return list(found)


def _find(db: sqlite3.Connection, terms: str, where: str, values: Sequence[object]) -> Iterator[int]:
    query = (
        "SELECT m.session FROM words JOIN messages m ON m.number = words.rowid JOIN sessions s ON s.key = m.session "
        f"WHERE words MATCH ? AND {where} ORDER BY words.rowid DESC"
    )
    return (key for (key,) in db.execute(query, [terms, *values]))


def _text_of(envelope: Envelope, conversation: ConversationReader) -> str:
    event = envelope.event
    if isinstance(event, Renamed):
        return split_cjk(event.title)
    if isinstance(event, PrefixBuilt) or event_type_of(event) not in CONVERSATION_TYPES:
        return ""
    message = conversation.read(envelope)
    return searchable_text(message) if message else ""
