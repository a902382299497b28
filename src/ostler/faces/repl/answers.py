"""Which key is the answer to an ask: one that stands alone, pressed after the ask was seen and not while typing.

A key that was pressed before belongs to something else, also when it is read later; one that is held down, or is part
of a word, was not meant as an answer. Whoever presses a key that is not taken is told why.
"""

import time
from collections.abc import Callable
from typing import Protocol

QUIET_SECONDS = 1.0  # so long after a key that was typed for something else, none is an answer
ALONE_SECONDS = 0.1  # a key that no other follows so soon was meant as one
UNKNOWN = "that is none of these keys"
WORDS = "not taken while you type: wait a moment, then press one of these keys"


class Timer(Protocol):
    def cancel(self) -> None: ...


class Answers:
    """One ask after the other."""

    def __init__(self, give: Callable[[str], None], later: Callable[[float, Callable[[], None]], Timer]) -> None:
        """`give` is told each answer; `later` calls something after so many seconds."""
        self._give = give
        self._later = later
        self._timer: Timer | None = None
        self._wanted = self._seen = False
        self._deaf_until = self._last = 0.0
        self.pressed = ""  # a key that was taken, and becomes the answer unless another follows
        self._hint = ""

    def ask(self) -> None:
        """There is something to answer, though nobody saw it yet."""
        self._wanted, self._seen = True, False

    def drawn(self) -> None:
        """What there is to answer, if anything, is on the screen."""
        self._seen = self._wanted

    def deafen(self, since: float) -> None:
        """Other things were typed until then."""
        self._deaf_until = max(self._deaf_until, since + QUIET_SECONDS)

    def hears(self) -> bool:
        """Whether a key is an answer by now."""
        return self._seen and time.monotonic() >= self._deaf_until

    @property
    def told(self) -> str:
        """What there is to see of the last key: itself, or why it was not taken."""
        return self.pressed or self._hint

    def press(self, key: str) -> None:
        """A key of the ask, empty for any other."""
        now = time.monotonic()
        burst, self._last = now - self._last < ALONE_SECONDS, now
        if burst or self._timer:  # words, or a key that is held down
            self.take_back()
            self.deafen(now)
        elif not key and not self.hears():  # words go on
            self.deafen(now)
        self._hint = "" if self.hears() else WORDS
        if self.hears():
            self._alone(key)

    def reject(self) -> None:
        """Something came that never is an answer, and takes nothing back either: Enter after a key."""
        if self._seen and not self.told:
            self._hint = UNKNOWN

    def _alone(self, key: str) -> None:
        if not key:
            self._hint = UNKNOWN
            return
        self.pressed = key
        self._timer = self._later(ALONE_SECONDS, self._answered)

    def take_back(self) -> None:
        """What was pressed is no answer."""
        if self._timer:
            self._timer.cancel()
        self._timer, self.pressed = None, ""

    def over(self) -> None:
        """There is nothing to answer any more."""
        self.take_back()
        self._wanted = self._seen = False
        self._hint = ""

    def _answered(self) -> None:
        key = self.pressed
        self.over()
        self._give(key)
