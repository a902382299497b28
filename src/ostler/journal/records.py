"""A session's records as a sequence, in memory or decoded lazily from a file."""

import os
import weakref
from array import array
from bisect import bisect_right
from collections.abc import Container, Iterable, Iterator
from pathlib import Path

from ostler.core.events import Envelope, Event, ToolFinished, UnknownEvent
from ostler.core.tools import ToolResult
from ostler.journal import record_codec
from ostler.journal.scan import Damage, scan

CACHE_BYTES = 16 * 1024 * 1024


def event_type_of(event: Event) -> str:
    """Return the name of an event's type as stored in records."""
    return event.type if isinstance(event, UnknownEvent) else str(event.__struct_config__.tag)


class ListRecords:
    """Records that are all in memory."""

    def __init__(self, envelopes: Iterable[Envelope] = ()) -> None:
        self.envelopes: list[Envelope] = []
        self._results: dict[str, int] = {}
        for envelope in envelopes:
            self.append(envelope)

    def append(self, envelope: Envelope) -> None:
        self.envelopes.append(envelope)
        if isinstance(envelope.event, ToolFinished):
            self._results[envelope.event.result.call_id] = len(self.envelopes) - 1

    def __len__(self) -> int:
        return len(self.envelopes)

    def __getitem__(self, index: int) -> Envelope:
        return self.envelopes[index]

    def __iter__(self) -> Iterator[Envelope]:
        return iter(self.envelopes)

    def type_at(self, index: int) -> str:
        return event_type_of(self.envelopes[index].event)

    def indexes_of(self, types: Container[str]) -> Iterator[int]:
        return (index for index, envelope in enumerate(self.envelopes) if event_type_of(envelope.event) in types)

    def index_after(self, seq: int) -> int:
        return bisect_right(self.envelopes, seq, key=lambda envelope: envelope.seq)

    def result(self, call_id: str) -> ToolResult | None:
        return _result_at(self, self._results.get(call_id))

    def result_seq(self, call_id: str) -> int | None:
        index = self._results.get(call_id)
        return None if index is None else self.envelopes[index].seq


class LazyRecords:
    """Records that are stored elsewhere. Numbers and types are in memory; events are decoded on access and cached."""

    def __init__(self) -> None:
        self._sizes = array("L")
        self._seqs = array("Q")
        self._kinds: list[str] = []
        self._names: dict[str, str] = {}
        self._results: dict[str, int] = {}
        self._cache: dict[int, Envelope] = {}
        self._cached_bytes = 0

    def line(self, index: int) -> bytes:
        """Return a record's line, ending with a newline."""
        raise NotImplementedError

    def decode(self, index: int) -> Envelope:
        return record_codec.decode(self.line(index))

    def __len__(self) -> int:
        return len(self._seqs)

    def __getitem__(self, index: int) -> Envelope:
        index = range(len(self))[index]
        envelope = self._cache.get(index)
        if envelope is None:
            envelope = self.decode(index)
            self._add_to_cache(index, envelope)
        return envelope

    def __iter__(self) -> Iterator[Envelope]:
        return map(self.__getitem__, range(len(self)))

    def type_at(self, index: int) -> str:
        return self._kinds[index]

    def indexes_of(self, types: Container[str]) -> Iterator[int]:
        return (index for index, kind in enumerate(self._kinds) if kind in types)

    def index_after(self, seq: int) -> int:
        return bisect_right(self._seqs, seq)

    def result(self, call_id: str) -> ToolResult | None:
        return _result_at(self, self._results.get(call_id))

    def result_seq(self, call_id: str) -> int | None:
        index = self._results.get(call_id)
        return None if index is None else self._seqs[index]

    def _add_envelope(self, envelope: Envelope, size: int) -> None:
        """Add a record that was just written."""
        event = envelope.event
        call_id = event.result.call_id if isinstance(event, ToolFinished) else None
        self._add_entry(envelope.seq, event_type_of(event), call_id, size)
        self._add_to_cache(len(self) - 1, envelope)

    def _add_entry(self, seq: int, kind: str, call_id: str | None, size: int) -> None:
        if call_id is not None:
            self._results[call_id] = len(self._seqs)
        self._sizes.append(size)
        self._seqs.append(seq)
        self._kinds.append(self._names.setdefault(kind, kind))

    def _add_to_cache(self, index: int, envelope: Envelope) -> None:
        self._cache[index] = envelope
        self._cached_bytes += self._sizes[index]
        while self._cached_bytes > CACHE_BYTES and len(self._cache) > 1:
            oldest = next(iter(self._cache))
            del self._cache[oldest]
            self._cached_bytes -= self._sizes[oldest]


class FileRecords(LazyRecords):
    """Records in a file, whose offsets are in memory."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.damage = Damage()
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        weakref.finalize(self, os.close, self._file)  # a reader may outlive the journal
        self._offsets = array("Q")
        names: dict[bytes, str] = {}
        with open(self._file, "rb", buffering=1024 * 1024, closefd=False) as file:
            for frame, offset, line in scan(file, self.damage):
                tag = frame["kind"]
                call_id = record_codec.result_call_id(frame, line) if tag == b"tool_finished" else None
                kind = names.get(tag) or names.setdefault(tag, tag.decode("utf-8", "replace"))
                self._offsets.append(offset)
                self._add_entry(int(frame["seq"]), kind, call_id, len(line))

    def append(self, envelope: Envelope, offset: int, size: int) -> None:
        """Add a record that was just written at `offset`."""
        self._offsets.append(offset)
        self._add_envelope(envelope, size)

    def line(self, index: int) -> bytes:
        """Return a record's line, always ending with a newline, even if the file has none there."""
        return os.pread(self._file, self._sizes[index] - 1, self._offsets[index]) + b"\n"


def _result_at(records: ListRecords | LazyRecords, index: int | None) -> ToolResult | None:
    event = records[index].event if index is not None else None
    return event.result if isinstance(event, ToolFinished) else None
