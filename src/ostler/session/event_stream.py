"""Publishes events to subscribers, without ever blocking the session.

Each subscriber gets every persisted event once and in order. One that subscribes late, or whose queue overflows, gets
the persisted events it missed and then a snapshot of the transient state.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence

from ostler.core.events import Envelope
from ostler.core.session_view import Records
from ostler.session.transient_state import TransientState

MAX_QUEUED_EVENTS = 4096


def records_between(records: Records, after: int, last: int) -> Iterator[Envelope]:
    """Return the records after one number, up to and including the last."""
    return map(records.__getitem__, range(records.index_after(after), records.index_after(last)))


class Subscription(AsyncIterator[Envelope]):
    """The event queue of one subscriber. It ends, after the queued events, on `close` or when the session closes."""

    def __init__(self, since: int, stream: "EventStream") -> None:
        self._last_seq = since
        self._queue: deque[Envelope] = deque()
        self._stream = stream
        self._changed = asyncio.Event()
        self._closed = False
        self._received_count = 0
        self._catch_up()

    def push(self, envelope: Envelope) -> None:
        """Queue an event. The stream calls this after it updated its own state."""
        if len(self._queue) < MAX_QUEUED_EVENTS:
            self._queue.append(envelope)
        else:
            if not self._is_behind:
                self._received_count = self._stream.event_count - 1 - len(self._queue)
            self._queue.clear()
            self._catch_up()
        self._changed.set()

    def close(self) -> None:
        self._closed = True
        self._changed.set()
        self._stream.unsubscribe(self)

    async def __anext__(self) -> Envelope:
        while True:
            for envelope in self._backlog:
                return self._mark_seen(envelope)
            if self._queue:
                return self._mark_seen(self._queue.popleft())
            if self._closed:
                raise StopAsyncIteration
            self._changed.clear()
            await self._changed.wait()

    def _mark_seen(self, envelope: Envelope) -> Envelope:
        self._last_seq = envelope.seq
        return envelope

    def _catch_up(self) -> None:
        self._is_behind = True
        self._backlog = self._replay(
            self._stream.persisted_after(self._last_seq), self._stream.snapshot(self._received_count)
        )

    def _replay(self, persisted: Iterator[Envelope], transient: Sequence[Envelope]) -> Iterator[Envelope]:
        yield from persisted
        yield from transient
        self._is_behind = False


class EventStream:
    """The subscriptions of one session. `persisted_after` returns the persisted events after a sequence number."""

    def __init__(self, persisted_after: Callable[[int], Iterator[Envelope]]) -> None:
        self.persisted_after = persisted_after
        self._subscriptions: list[Subscription] = []
        self._transient_state = TransientState()

    @property
    def event_count(self) -> int:
        """The number of events published so far."""
        return self._transient_state.event_count

    def snapshot(self, after: int) -> Sequence[Envelope]:
        """Return the current transient state, leaving out what was known after `after` events."""
        return self._transient_state.snapshot(after)

    def subscribe(self, since: int) -> Subscription:
        """Subscribe to the persisted events after `since` and to all new events from now on."""
        subscription = Subscription(since, self)
        self._subscriptions.append(subscription)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        if subscription in self._subscriptions:
            self._subscriptions.remove(subscription)

    def publish(self, envelope: Envelope) -> None:
        self._transient_state.apply(envelope)
        for subscription in self._subscriptions:
            subscription.push(envelope)

    def close(self) -> None:
        for subscription in tuple(self._subscriptions):
            subscription.close()
