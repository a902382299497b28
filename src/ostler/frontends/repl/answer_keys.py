"""Which key is the answer to an ask: one that stands alone, pressed after the ask was seen and not while typing.

A key that was pressed before belongs to something else, also when it is read later; one that is held down, or is part
of a word, was not meant as an answer. Whoever presses a key that is not taken is told why.
"""

import time
from collections.abc import Callable
from typing import Protocol

TYPING_PAUSE_SECONDS = 1.0  # so long after a key that was typed for something else, none is an answer
SINGLE_KEY_SECONDS = 0.1  # a key that no other follows so soon was meant as one
UNKNOWN_KEY_HINT = "that is none of these keys"
TYPING_HINT = "not taken while you type: wait a moment, then press one of these keys"


class Timer(Protocol):
    def cancel(self) -> None: ...


class AnswerKeyFilter:
    """One ask after the other."""

    def __init__(
        self, on_answer: Callable[[str], None], call_later: Callable[[float, Callable[[], None]], Timer]
    ) -> None:
        """`give` is told each answer; `later` calls something after so many seconds."""
        self._on_answer = on_answer
        self._call_later = call_later
        self._timer: Timer | None = None
        self._expecting = self._visible = False
        self._ignore_until = self._last_press = 0.0
        self.pending_key = ""  # a key that was taken, and becomes the answer unless another follows
        self._hint = ""

    def expect_answer(self) -> None:
        """There is something to answer, though nobody saw it yet."""
        self._expecting, self._visible = True, False

    def mark_visible(self) -> None:
        """What there is to answer, if anything, is on the screen."""
        self._visible = self._expecting

    def ignore_keys_since(self, moment: float) -> None:
        """Other things were typed until then."""
        self._ignore_until = max(self._ignore_until, moment + TYPING_PAUSE_SECONDS)

    def accepts_keys(self) -> bool:
        """Whether a key is an answer by now."""
        return self._visible and time.monotonic() >= self._ignore_until

    @property
    def feedback(self) -> str:
        """What there is to see of the last key: itself, or why it was not taken."""
        return self.pending_key or self._hint

    def press(self, key: str) -> None:
        """A key of the ask, empty for any other."""
        now = time.monotonic()
        burst, self._last_press = now - self._last_press < SINGLE_KEY_SECONDS, now
        if burst or self._timer:  # words, or a key that is held down
            self.discard_key()
            self.ignore_keys_since(now)
        elif not key and not self.accepts_keys():  # words go on
            self.ignore_keys_since(now)
        self._hint = "" if self.accepts_keys() else TYPING_HINT
        if self.accepts_keys():
            self._accept_key(key)

    def reject(self) -> None:
        """Something came that never is an answer, and takes nothing back either: Enter after a key."""
        if self._visible and not self.feedback:
            self._hint = UNKNOWN_KEY_HINT

    def _accept_key(self, key: str) -> None:
        if not key:
            self._hint = UNKNOWN_KEY_HINT
            return
        self.pending_key = key
        self._timer = self._call_later(SINGLE_KEY_SECONDS, self._deliver)

    def discard_key(self) -> None:
        """What was pressed is no answer."""
        if self._timer:
            self._timer.cancel()
        self._timer, self.pending_key = None, ""

    def reset(self) -> None:
        """There is nothing to answer any more."""
        self.discard_key()
        self._expecting = self._visible = False
        self._hint = ""

    def _deliver(self) -> None:
        key = self.pending_key
        self.reset()
        self._on_answer(key)
