"""A session as JSON that can be taken elsewhere and brought in again."""

import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import msgspec

from ostler.journal import record
from ostler.journal.fork import NOT_FORKED, write_new
from ostler.journal.meta import Meta, title_of
from ostler.journal.records import kind_of
from ostler.journal.store import Place, Store
from ostler.vocabulary.errors import UsageError
from ostler.vocabulary.events import Envelope, Renamed, SessionOpened, Unknown
from ostler.vocabulary.seams import Past
from ostler.wire.codec import BadWire, decode_envelope, encode_envelope

FORMAT = "ostler session"
VERSION = 1
MOST_BYTES = 1024 * 1024 * 1024
HIGHEST = 10**14

# What comes from elsewhere is a conversation. It brings no rules, no settings, no prompt of its own and no far side.
NOT_IMPORTED = NOT_FORKED | frozenset(
    ("session_opened", "info_changed", "option_changed", "prefix_built", "child_started", "child_ended", "renamed")
)


class _Export(msgspec.Struct):
    format: str
    version: int
    session: dict[str, Any]
    records: list[msgspec.Raw]


def to_json(meta: Meta, past: Past, clean: Callable[[Any], Any]) -> Iterator[bytes]:
    """The export in pieces: every record, also the reverted ones; `clean` has the last word over what is told."""
    session = msgspec.json.encode(clean(msgspec.to_builtins(meta)))
    yield b'{"format":"%b","version":%d,"session":%b,"records":[' % (FORMAT.encode(), VERSION, session)
    for index in range(len(past)):
        plain = clean(msgspec.json.decode(encode_envelope(past[index])))
        yield (b",\n" if index else b"\n") + msgspec.json.encode(plain)
    yield b"\n]}\n"


def from_json(data: bytes, store: Store, project: str, opened: SessionOpened) -> tuple[Place, int]:
    """A new session out of an export, and how many of its records were left behind; `opened` says where it is now."""
    export = _read(data)
    records = [_envelope(raw, number) for number, raw in enumerate(export.records, 1)]
    _check_order(records)
    kept = [e for e in records if kind_of(e.event) not in NOT_IMPORTED and not isinstance(e.event, Unknown)]
    seq = records[-1].seq if records else 0
    added = [Envelope(seq + 1, time.time(), opened)]
    if isinstance(title := export.session.get("title"), str) and title:
        added.append(Envelope(seq + 2, time.time(), Renamed(title_of(title))))
    return write_new(store, project, map(record.encode, [*kept, *added])), len(records) - len(kept)


def _read(data: bytes) -> _Export:
    if len(data) > MOST_BYTES:
        raise UsageError(f"the export is larger than {MOST_BYTES >> 20} MB")
    try:
        export = msgspec.json.decode(data, type=_Export)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"this is no export of a session: {error}", hint="ostler sessions export makes one") from None
    if export.format != FORMAT or export.version > VERSION:
        told = f"{export.format[:40]!r} {export.version}"
        raise UsageError(f"this export has the format {told}; this Ostler reads {FORMAT!r} {VERSION}")
    return export


def _envelope(raw: msgspec.Raw, number: int) -> Envelope:
    try:
        envelope = decode_envelope(bytes(raw))
    except BadWire as error:
        raise UsageError(f"record {number} of the export is damaged: {error}") from None
    if not 0 <= envelope.time < HIGHEST:
        raise UsageError(f"record {number} of the export has no possible time")
    return envelope


def _check_order(records: list[Envelope]) -> None:
    seqs = [0, *(envelope.seq for envelope in records), HIGHEST]
    for number, (before, after) in enumerate(pairwise(seqs), 1):
        if not before < after:
            raise UsageError(f"record {number} of the export is out of order")
