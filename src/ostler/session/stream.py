"""Publishing: every subscriber sees every event once, in order, and none can make the session wait."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable

from ostler.vocabulary.events import Envelope


class Subscription(AsyncIterator[Envelope]):
    """One reader's own queue; it ends when the session closes or `close` is called."""

    def __init__(self, past: Iterable[Envelope], stream: "Stream") -> None:
        self._past = iter(past)
        self._waiting: deque[Envelope] = deque()
        self._stream = stream
        self._changed = asyncio.Event()
        self._closed = False

    def push(self, envelope: Envelope) -> None:
        self._waiting.append(envelope)
        self._changed.set()

    def close(self) -> None:
        self._closed = True
        self._changed.set()
        self._stream.leave(self)

    async def __anext__(self) -> Envelope:
        for envelope in self._past:
            return envelope
        while not self._waiting:
            if self._closed:
                raise StopAsyncIteration
            self._changed.clear()
            await self._changed.wait()
        return self._waiting.popleft()


class Stream:
    """The readers of one session."""

    def __init__(self) -> None:
        self._readers: list[Subscription] = []

    def join(self, past: Iterable[Envelope]) -> Subscription:
        """A new reader that first sees the past; it is listening as soon as this returns."""
        reader = Subscription(past, self)
        self._readers.append(reader)
        return reader

    def leave(self, reader: Subscription) -> None:
        if reader in self._readers:
            self._readers.remove(reader)

    def publish(self, envelope: Envelope) -> None:
        for reader in self._readers:
            reader.push(envelope)

    def close(self) -> None:
        for reader in tuple(self._readers):
            reader.close()
