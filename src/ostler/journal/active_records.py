"""The records that count: a revert leaves out what came after its mark, until a later one counts it again."""

from collections.abc import Container, Iterator, Sequence
from typing import overload

from ostler.core.events import Envelope, Event, Reverted
from ostler.core.protocols import Records
from ostler.core.tools import ToolResult


class ActiveRecords:
    """A past seen from where the session stands now: the way back from its end, jumping at each revert on it.

    It is as much a `Past` as what it looks at, and grows with it; `settle` is to be called after a revert was kept.
    """

    def __init__(self, records: Records) -> None:
        self._records = records
        self._ranges: list[range] = []
        self._last_start = 0
        self._closed_count = 0
        self.refresh()

    def refresh(self) -> None:
        """Find the way anew."""
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
        parts = (*self._ranges, range(self._last_start, len(self._records)))
        before = [sum(map(len, parts[:which])) for which in range(len(parts))]
        for at in self._records.indexes_of(types):
            yield from (passed + at - part.start for part, passed in zip(parts, before, strict=True) if at in part)

    def index_after(self, seq: int) -> int:
        """By number, which among what counts still only grows."""
        place, passed = self._records.index_after(seq), 0
        for part in (*self._ranges, range(self._last_start, len(self._records))):
            if place < part.stop:
                return passed + max(0, place - part.start)
            passed += len(part)
        return passed

    def result(self, call_id: str) -> ToolResult | None:
        seq = self.result_seq(call_id)
        index = len(self) if seq is None else self.index_after(seq - 1)
        counts = index < len(self) and self[index].seq == seq
        return self._records.result(call_id) if counts else None

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
    """The events of a past alone."""

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
            return [self._records[at].event for at in range(len(self))[index]]
        return self._records[index].event


def latest_event(records: Records, event_type: str) -> Event | None:
    """The newest event of a kind; none of another kind is decoded."""
    place = max(records.indexes_of((event_type,)), default=None)
    return None if place is None else records[place].event
