"""Limits an amount per minute."""

import time
from collections.abc import Callable


class RateLimit:
    """A bucket that holds one minute's amount and refills evenly."""

    def __init__(self, per_minute: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.per_minute = per_minute
        self._clock = clock
        self._left = per_minute
        self._at = clock()

    def take(self, amount: float = 1) -> float:
        """Take an amount and return 0, or take nothing and return the seconds until it will be available."""
        self.spend(0)
        if amount <= self._left or self._left >= self.per_minute:
            self._left -= amount  # one amount over the limit passes a full bucket, and delays what follows
            return 0
        return (amount - self._left) * 60 / self.per_minute

    def spend(self, amount: float) -> None:
        """Count an amount that was used already; what follows has to wait if it was too much."""
        now = self._clock()
        self._left = min(self.per_minute, self._left + max(0.0, now - self._at) * self.per_minute / 60) - amount
        self._at = now
