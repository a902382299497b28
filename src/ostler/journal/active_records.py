"""The records that are in effect: everything except what a revert removed."""

from collections.abc import Container, Iterator, Sequence
from typing import overload

from ostler.core.events import Envelope, Event, Reverted
from ostler.core.session_view import Records
from ostler.core.tools import ToolResult


class ActiveRecords:
    """The records that are in effect, found by walking back from the end and jumping at each revert.

    Implements `Records` and grows with the underlying records; call `refresh` after appending a revert.
    """

    def __init__(self, records: Records) -> None:
        self._records = records
        self._ranges: list[range] = []
        self._last_start = 0
        self._closed_count = 0
        self.refresh()

    def refresh(self) -> None:
        """Recompute which records are in effect."""
        self._ranges = []
        self._last_start = end = len(self._records)
        for index in reversed([*self._records.indexes_of(("reverted",))]):
            event = self._records[index].event
            if index >= end or not isinstance(event, Reverted):
                continue
            self._ranges.append(range(index + 1, end))
            end = min(index, self._records.index_after(event.to_seq))
        self._ranges.append(range(end))
        self._ranges.reverse()
        self._last_start = self._ranges.pop().start
        self._closed_count = sum(map(len, self._ranges))

    def __len__(self) -> int:
        return self._closed_count + len(self._records) - self._last_start

    def __getitem__(self, index: int) -> Envelope:
        return self._records[self._source_index(index)]

    def __iter__(self) -> Iterator[Envelope]:
        for part in (*self._ranges, range(self._last_start, len(self._records))):
            yield from map(self._records.__getitem__, part)

    def type_at(self, index: int) -> str:
        return self._records.type_at(self._source_index(index))

    def indexes_of(self, types: Container[str]) -> Iterator[int]:
        ranges = (*self._ranges, range(self._last_start, len(self._records)))
        counts_before = [sum(map(len, ranges[:position])) for position in range(len(ranges))]
        for index in self._records.indexes_of(types):
            for span, count in zip(ranges, counts_before, strict=True):
                if index in span:
                    yield count + index - span.start

    def index_after(self, seq: int) -> int:
        """Return the index of the first active record whose number is greater than `seq`."""
        source_index, count = self._records.index_after(seq), 0
        for part in (*self._ranges, range(self._last_start, len(self._records))):
            if source_index < part.stop:
                return count + max(0, source_index - part.start)
            count += len(part)
        return count

    def result(self, call_id: str) -> ToolResult | None:
        seq = self.result_seq(call_id)
        index = len(self) if seq is None else self.index_after(seq - 1)
        active = index < len(self) and self[index].seq == seq
        return self._records.result(call_id) if active else None

    def result_seq(self, call_id: str) -> int | None:
        return self._records.result_seq(call_id)

    def _source_index(self, index: int) -> int:
        index = range(len(self))[index]
        for part in self._ranges:
            if index < len(part):
                return part[index]
            index -= len(part)
        return self._last_start + index


class EventSequence(Sequence[Event]):
    """The events of some records, as a sequence."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[Event]:
        return (envelope.event for envelope in self._records)

    @overload
    def __getitem__(self, index: int) -> Event: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Event]: ...

    def __getitem__(self, index: int | slice) -> Event | Sequence[Event]:
        if isinstance(index, slice):
            return [self._records[position].event for position in range(len(self))[index]]
        return self._records[index].event
