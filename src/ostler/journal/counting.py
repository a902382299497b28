"""The records that count: a revert leaves out what came after its mark, until a later one counts it again."""

from collections.abc import Container, Iterator, Sequence
from typing import overload

from ostler.vocabulary.events import Envelope, Event, Reverted
from ostler.vocabulary.seams import Past
from ostler.vocabulary.tools import ToolResult


class Counting:
    """A past seen from where the session stands now: the way back from its end, jumping at each revert on it.

    It is as much a `Past` as what it looks at, and grows with it; `settle` is to be called after a revert was kept.
    """

    def __init__(self, past: Past) -> None:
        self._past = past
        self._parts: list[range] = []
        self._open = 0
        self._before = 0
        self.settle()

    def settle(self) -> None:
        """Find the way anew."""
        self._parts = []
        self._open = end = len(self._past)
        for index in reversed([*self._past.of(("reverted",))]):
            event = self._past[index].event
            if index >= end or not isinstance(event, Reverted):
                continue
            self._parts.append(range(index + 1, end))
            end = min(index, self._past.after(event.to_seq))
        self._parts.append(range(end))
        self._parts.reverse()
        self._open = self._parts.pop().start
        self._before = sum(map(len, self._parts))

    def __len__(self) -> int:
        return self._before + len(self._past) - self._open

    def __getitem__(self, index: int) -> Envelope:
        return self._past[self._place(index)]

    def __iter__(self) -> Iterator[Envelope]:
        for part in (*self._parts, range(self._open, len(self._past))):
            yield from map(self._past.__getitem__, part)

    def kind(self, index: int) -> str:
        return self._past.kind(self._place(index))

    def of(self, kinds: Container[str]) -> Iterator[int]:
        parts = (*self._parts, range(self._open, len(self._past)))
        before = [sum(map(len, parts[:which])) for which in range(len(parts))]
        for at in self._past.of(kinds):
            yield from (passed + at - part.start for part, passed in zip(parts, before, strict=True) if at in part)

    def after(self, seq: int) -> int:
        """By number, which among what counts still only grows."""
        place, passed = self._past.after(seq), 0
        for part in (*self._parts, range(self._open, len(self._past))):
            if place < part.stop:
                return passed + max(0, place - part.start)
            passed += len(part)
        return passed

    def result(self, call_id: str) -> ToolResult | None:
        seq = self.result_seq(call_id)
        index = len(self) if seq is None else self.after(seq - 1)
        counts = index < len(self) and self[index].seq == seq
        return self._past.result(call_id) if counts else None

    def result_seq(self, call_id: str) -> int | None:
        return self._past.result_seq(call_id)

    def _place(self, index: int) -> int:
        index = range(len(self))[index]
        for part in self._parts:
            if index < len(part):
                return part[index]
            index -= len(part)
        return self._open + index


class Events(Sequence[Event]):
    """The events of a past alone."""

    def __init__(self, past: Past) -> None:
        self._past = past

    def __len__(self) -> int:
        return len(self._past)

    def __iter__(self) -> Iterator[Event]:
        return (envelope.event for envelope in self._past)

    @overload
    def __getitem__(self, index: int) -> Event: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Event]: ...

    def __getitem__(self, index: int | slice) -> Event | Sequence[Event]:
        if isinstance(index, slice):
            return [self._past[at].event for at in range(len(self))[index]]
        return self._past[index].event


def last(past: Past, kind: str) -> Event | None:
    """The newest event of a kind; none of another kind is decoded."""
    place = max(past.of((kind,)), default=None)
    return None if place is None else past[place].event
