"""Timeouts for a silent server, and the notices shown meanwhile."""

from collections.abc import Callable

import msgspec

from ostler.core.errors import BackendError
from ostler.models.model_types import NoData


class StallTimeouts(msgspec.Struct, frozen=True):
    """Seconds until a notice, until the first data, between two data events, and between checks."""

    notice: float = 5.0
    first: float = 300.0
    silent: float = 180.0
    tick: float = 1.0


class StallDetector:
    """Detects stalls in one attempt. Keep-alive data is ignored."""

    def __init__(self, timeouts: StallTimeouts, server: str, clock: Callable[[], float]) -> None:
        self._timeouts = timeouts
        self._server = server
        self._clock = clock
        self._last_data = clock()
        self._limit = timeouts.first
        self._next_notice = timeouts.notice

    @property
    def tick(self) -> float:
        """Seconds between checks."""
        return self._timeouts.tick

    def data_received(self) -> None:
        """Restart the timeout after a part of the reply arrived."""
        self._last_data = self._clock()
        self._limit = self._timeouts.silent
        self._next_notice = self._timeouts.notice

    def no_data(self) -> NoData | None:
        """Handle a tick without data. Return a notice if one is due; raise `BackendError` after the timeout."""
        silence = self._clock() - self._last_data
        if silence >= self._limit:
            raise BackendError(
                f"{self._server} has sent nothing for {silence:.0f} s",
                code="stalled",
                hint="check the server's load, or try again",
            )
        if silence < self._next_notice:
            return None
        self._next_notice = silence + self._timeouts.notice
        return NoData(round(silence, 1), f"no data from {self._server} for {silence:.0f} s")
