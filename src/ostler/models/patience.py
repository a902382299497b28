"""How long a silent server is waited for, and what the person sees of it meanwhile."""

from collections.abc import Callable

import msgspec

from ostler.models.words import Silence
from ostler.vocabulary.errors import BackendError


class Patience(msgspec.Struct, frozen=True):
    """Seconds: until the silence is shown, until a reply must begin, and between two signs of it."""

    notice: float = 5.0
    first: float = 300.0
    silent: float = 180.0
    tick: float = 1.0


class StallWatch:
    """Watches one attempt. What only keeps a connection alive is no sign of a reply."""

    def __init__(self, patience: Patience, where: str, clock: Callable[[], float]) -> None:
        self._patience = patience
        self._where = where
        self._clock = clock
        self._since = clock()
        self._limit = patience.first
        self._next_notice = patience.notice

    @property
    def tick(self) -> float:
        """How often to look."""
        return self._patience.tick

    def heard(self) -> None:
        """A part of the reply came."""
        self._since = self._clock()
        self._limit = self._patience.silent
        self._next_notice = self._patience.notice

    def quiet(self) -> Silence | None:
        """Nothing came: what to show now, if anything; a `BackendError` when it is too long."""
        silence = self._clock() - self._since
        if silence >= self._limit:
            raise BackendError(
                f"{self._where} has sent nothing for {silence:.0f} s",
                code="stalled",
                hint="look at the server's load, or try again",
            )
        if silence < self._next_notice:
            return None
        self._next_notice = silence + self._patience.notice
        return Silence(round(silence, 1), f"no data from {self._where} for {silence:.0f} s")
