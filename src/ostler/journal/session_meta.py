"""`meta.json`: a session's title, model, counts and times; can be rebuilt from the journal."""

import os
import time
from pathlib import Path
from typing import Any

import msgspec

from ostler.core.events import (
    Compacted,
    Envelope,
    Event,
    InfoChanged,
    MessageDone,
    OptionChanged,
    Renamed,
    Reverted,
    SessionOpened,
    TurnEnded,
    TurnStarted,
)
from ostler.core.session_view import Records
from ostler.text.session_title import session_title
from ostler.wire.event_codec import encode_json

META_NAME = "meta.json"
META_EVENT_TYPES = frozenset(
    [
        *("session_opened", "info_changed", "turn_started", "message_done"),
        *("renamed", "reverted", "option_changed", "compacted"),
    ]
)


class CompactionInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """How often the history was compacted, and the last record that the latest summary replaces."""

    times: int = 0
    upto_seq: int = 0
    at: str = ""


class SessionMeta(msgspec.Struct, omit_defaults=True):
    """A summary of a session. `seq` is the last record included; `forked_from` is the id of the original session.

    `first_words` is the start of the prompt at `first_seq`. It is the title until the session is named, unless that
    prompt was reverted.
    """

    id: str
    cwd: str = ""
    title: str = ""
    summary: str = ""
    backend: str = ""
    agent: str = ""
    model: str = ""
    started: str = ""
    changed: str = ""
    turns: int = 0
    messages: int = 0
    compaction: CompactionInfo = CompactionInfo()
    parent_id: str = ""
    forked_from: str = ""
    named: bool = False
    seq: int = 0
    first_words: str = ""
    first_seq: int = 0

    def apply(self, envelope: Envelope) -> None:
        """Update the summary with the next record."""
        self.seq = envelope.seq
        self.changed = format_time(envelope.time)
        self.started = self.started or self.changed
        match envelope.event:
            case TurnStarted(_, prompt):
                self.turns += 1
                self.messages += 1
                if not self.title:
                    self.title = self.first_words = session_title(prompt.text)
                    self.first_seq = envelope.seq
            case MessageDone(message):
                self.messages += not message.continues
            case SessionOpened():
                self._apply_opened(envelope.event)
            case Reverted(to_seq) if not self.named:  # a reverted prompt does not name the session
                self.title = self.first_words if to_seq >= self.first_seq else ""
            case Compacted(summary, upto_seq):
                times = self.compaction.times + (1 if summary else -1)
                self.compaction = CompactionInfo(max(0, times), upto_seq, self.changed)
            case _:
                self._apply_change(envelope.event)

    def _apply_opened(self, event: SessionOpened) -> None:
        self.cwd, self.backend = event.cwd, event.backend
        if event.session_id == self.id:
            self.parent_id = event.parent_id
        else:
            self.forked_from = event.session_id

    def _apply_change(self, event: Event) -> None:
        match event:
            case Renamed(title, summary):
                self.summary = summary or self.summary
                if title:
                    self.title, self.named = session_title(title), True
            case InfoChanged(info):
                self.model = info.option("model") or self.model
                self.agent = info.option("agent") or self.agent
            case OptionChanged("model", value):
                self.model = value
            case OptionChanged("agent", value):
                self.agent = value
            case _:
                pass


class MetaFile:
    """Writes `meta.json` when the session opens, is renamed or closes, and after each turn.

    It is written on opening so that a child session is known even after a crash.
    """

    def __init__(self, folder: Path, session_id: str) -> None:
        self._path = folder / META_NAME
        self.meta = SessionMeta(session_id)
        self.written_seq = 0  # number of the last record when the file was written

    def catch_up(self, records: Records) -> None:
        self.meta = read_meta(self._path.parent, self.meta.id) or self.meta
        self.written_seq = self.meta.seq
        last = records[-1].seq if len(records) else 0
        if self.meta.seq > last:
            self.meta = SessionMeta(self.meta.id)
        for index in range(records.index_after(self.meta.seq), len(records)):
            if records.type_at(index) in META_EVENT_TYPES or index == len(records) - 1:
                self.meta.apply(records[index])

    def on_record(self, envelope: Envelope) -> None:
        self.meta.apply(envelope)
        if isinstance(envelope.event, SessionOpened | TurnEnded | Renamed):
            self._write()

    def close(self) -> None:
        self._write()

    def _write(self) -> None:
        write_atomically(self._path, self.meta)


def read_meta(folder: Path, session_id: str) -> SessionMeta | None:
    """Read a session's `meta.json`. Return None if it is missing, damaged or belongs to another session."""
    try:
        meta = msgspec.json.decode((folder / META_NAME).read_bytes(), type=SessionMeta)
    except (OSError, msgspec.DecodeError, RecursionError):
        return None
    return meta if meta.id == session_id else None


def write_atomically(path: Path, value: Any) -> None:
    """Replace a JSON file atomically; write errors are ignored because the file can be rebuilt."""
    new = path.with_name(f".{path.name}.new")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    try:
        with open(os.open(new, flags, 0o600), "wb") as file:
            file.write(msgspec.json.format(encode_json(value), indent=2) + b"\n")
        os.replace(new, path)
    except OSError:
        return


def format_time(seconds: float) -> str:
    """Format a Unix time as UTC, or as an empty string if it is out of range."""
    try:
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
    except (OverflowError, ValueError, OSError):
        return ""
