"""Limits how much a server can make this client store and show."""

import time
from collections.abc import Callable

from ostler.backends.remote.stream import ProtocolViolation

MAX_BYTES = 256 * 1024 * 1024
REFILL_SECONDS = 300.0  # after which all of it is available again
MIN_COST = 512  # of a message, because each may become a record
MAX_REPLY = 16 * 1024 * 1024  # characters of one message of the model


class TrafficLimit:
    """What the messages of a server may still cost. It is renewed slowly, and when the user sends a prompt."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._at = clock()
        self._used = 0.0
        self._reply = 0

    def reset(self) -> None:
        self._used = 0.0

    def count(self, size: int) -> None:
        """Count a message. Raises `ProtocolViolation` if the server sends without end."""
        now = self._clock()
        renewed = (now - self._at) * MAX_BYTES / REFILL_SECONDS
        self._used, self._at = max(0.0, self._used - renewed) + max(size, MIN_COST), now
        if self._used > MAX_BYTES:
            raise ProtocolViolation(f"the server sent more than {MAX_BYTES >> 20} MiB of messages in a short time")

    def count_delta(self, size: int) -> None:
        """Count text of the message that the model writes now. Raises `ProtocolViolation` if it has no end."""
        self._reply += size
        if self._reply > MAX_REPLY:
            raise ProtocolViolation(f"the server sent a reply of more than {MAX_REPLY >> 20} million characters")

    def end_reply(self) -> None:
        self._reply = 0
