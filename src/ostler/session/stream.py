"""Publishing: every reader sees every kept event once, in order; none can make the session wait, or fill its memory.

A reader that joins late, or for whom too much waited, is told the kept events and then what is so now.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence

from ostler.session.now import Now
from ostler.vocabulary.events import Envelope

MOST_WAITING = 4096


class Subscription(AsyncIterator[Envelope]):
    """One reader's own queue; `close` ends it, as the session's end does, after what waits then."""

    def __init__(self, since: int, stream: "Stream") -> None:
        self._seen = since
        self._waiting: deque[Envelope] = deque()
        self._stream = stream
        self._changed = asyncio.Event()
        self._closed = False
        self._heard = 0
        self._catch_up()

    def push(self, envelope: Envelope) -> None:
        """For the stream, which knows already that it happened."""
        if len(self._waiting) < MOST_WAITING:
            self._waiting.append(envelope)
        else:
            if not self._behind:
                self._heard = self._stream.number - 1 - len(self._waiting)
            self._waiting.clear()
            self._catch_up()
        self._changed.set()

    def close(self) -> None:
        self._closed = True
        self._changed.set()
        self._stream.leave(self)

    async def __anext__(self) -> Envelope:
        while True:
            for envelope in self._missed:
                return self._taken(envelope)
            if self._waiting:
                return self._taken(self._waiting.popleft())
            if self._closed:
                raise StopAsyncIteration
            self._changed.clear()
            await self._changed.wait()

    def _taken(self, envelope: Envelope) -> Envelope:
        self._seen = envelope.seq
        return envelope

    def _catch_up(self) -> None:
        self._behind = True
        self._missed = self._telling(self._stream.kept(self._seen), self._stream.now(self._heard))

    def _telling(self, kept: Iterator[Envelope], now: Sequence[Envelope]) -> Iterator[Envelope]:
        yield from kept
        yield from now
        self._behind = False


class Stream:
    """The readers of one session. `kept` gives the kept events after a number, up to the last there is when asked."""

    def __init__(self, kept: Callable[[int], Iterator[Envelope]]) -> None:
        self.kept = kept
        self._readers: list[Subscription] = []
        self._now = Now()

    @property
    def number(self) -> int:
        """How many events there were."""
        return self._now.number

    def now(self, after: int) -> Sequence[Envelope]:
        """What is so now, as far as it happened after the event of that number."""
        return self._now.told(after)

    def join(self, since: int) -> Subscription:
        """A new reader that is told first what was kept after `since`; it is listening as soon as this returns."""
        reader = Subscription(since, self)
        self._readers.append(reader)
        return reader

    def leave(self, reader: Subscription) -> None:
        if reader in self._readers:
            self._readers.remove(reader)

    def publish(self, envelope: Envelope) -> None:
        self._now.take(envelope)
        for reader in self._readers:
            reader.push(envelope)

    def close(self) -> None:
        for reader in tuple(self._readers):
            reader.close()
