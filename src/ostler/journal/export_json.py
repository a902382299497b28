"""Exports a session as JSON and imports such a file as a new session."""

import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import msgspec

from ostler.core.errors import UsageError
from ostler.core.events import Envelope, Renamed, SessionOpened, UnknownEvent
from ostler.core.session_view import Records
from ostler.journal import record_codec
from ostler.journal.fork import NOT_FORKED, create_session
from ostler.journal.journal_store import JournalStore, StoredSession
from ostler.journal.records import event_type_of
from ostler.journal.session_meta import SessionMeta
from ostler.text.session_title import session_title
from ostler.wire.event_codec import EventDecodeError, decode_envelope, encode_envelope

FORMAT = "ostler session"
VERSION = 1
MAX_BYTES = 1024 * 1024 * 1024
MAX_NUMBER = 10**14

# An import brings only the conversation: permission rules, settings, system prompts and remote sessions are dropped.
NOT_IMPORTED = NOT_FORKED | frozenset(
    ("session_opened", "info_changed", "option_changed", "prefix_built", "child_started", "child_ended", "renamed")
)


class _Export(msgspec.Struct):
    format: str
    version: int
    session: dict[str, Any]
    records: list[msgspec.Raw]


def to_json(meta: SessionMeta, records: Records, redact: Callable[[Any], Any]) -> Iterator[bytes]:
    """Yield the export in chunks, with all records, including reverted ones; `redact` is applied to every value."""
    session = msgspec.json.encode(redact(msgspec.to_builtins(meta)))
    yield b'{"format":"%b","version":%d,"session":%b,"records":[' % (FORMAT.encode(), VERSION, session)
    for index in range(len(records)):
        plain = redact(msgspec.json.decode(encode_envelope(records[index])))
        yield (b",\n" if index else b"\n") + msgspec.json.encode(plain)
    yield b"\n]}\n"


def from_json(data: bytes, store: JournalStore, project: str, opened: SessionOpened) -> tuple[StoredSession, int]:
    """Import an export as a new session; `opened` is its opening record.

    Return the session and the number of records that were not imported. Raises `UsageError` if the export is invalid.
    """
    export = _parse_export(data)
    records = [_parse_envelope(raw, number) for number, raw in enumerate(export.records, 1)]
    _check_order(records)
    imported = [
        envelope
        for envelope in records
        if event_type_of(envelope.event) not in NOT_IMPORTED and not isinstance(envelope.event, UnknownEvent)
    ]
    seq = records[-1].seq if records else 0
    added = [Envelope(seq + 1, time.time(), opened)]
    if isinstance(title := export.session.get("title"), str) and title:
        added.append(Envelope(seq + 2, time.time(), Renamed(session_title(title))))
    return create_session(store, project, map(record_codec.encode, [*imported, *added])), len(records) - len(imported)


def _parse_export(data: bytes) -> _Export:
    if len(data) > MAX_BYTES:
        raise UsageError(f"the export is larger than {MAX_BYTES >> 20} MB")
    try:
        export = msgspec.json.decode(data, type=_Export)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"not a session export: {error}", hint="create one with `ostler sessions export`") from None
    if export.format != FORMAT or export.version > VERSION:
        found = f"{export.format[:40]!r} {export.version}"
        raise UsageError(f"this export has the format {found}; this version reads {FORMAT!r} {VERSION}")
    return export


def _parse_envelope(raw: msgspec.Raw, number: int) -> Envelope:
    try:
        envelope = decode_envelope(bytes(raw))
    except EventDecodeError as error:
        raise UsageError(f"record {number} of the export is damaged: {error}") from None
    if not 0 <= envelope.time < MAX_NUMBER:
        raise UsageError(f"record {number} of the export has an invalid time")
    return envelope


def _check_order(records: list[Envelope]) -> None:
    seqs = [0, *(envelope.seq for envelope in records), MAX_NUMBER]
    for number, (before, after) in enumerate(pairwise(seqs), 1):
        if not before < after:
            raise UsageError(f"record {number} of the export is out of order")
