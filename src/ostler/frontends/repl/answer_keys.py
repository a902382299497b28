"""Decides which key press is the answer to an approval request, so that keys typed for something else are not.

An answer is a single key press after the request became visible and a pause in typing. Keys that were pressed earlier,
are held down or belong to a word are ignored, and a hint says why.
"""

import time
from collections.abc import Callable
from typing import Protocol

TYPING_PAUSE_SECONDS = 1.0  # pause after typing before a key can be an answer
SINGLE_KEY_SECONDS = 0.1  # no other key may follow an answer within this time
UNKNOWN_KEY_HINT = "press one of these keys"
TYPING_HINT = "you were typing: wait a second, then press one of these keys"


class Timer(Protocol):
    def cancel(self) -> None: ...


class AnswerKeyFilter:
    """Filters the keys for one dialog at a time."""

    def __init__(
        self, on_answer: Callable[[str], None], call_later: Callable[[float, Callable[[], None]], Timer]
    ) -> None:
        """`on_answer` receives each answer; `call_later` schedules a call after some seconds."""
        self._on_answer = on_answer
        self._call_later = call_later
        self._timer: Timer | None = None
        self._expecting = self._visible = False
        self._ignore_until = self._last_press = 0.0
        self.pending_key = ""  # becomes the answer unless another key follows
        self._hint = ""

    def expect_answer(self) -> None:
        """Start expecting an answer; the dialog is not visible yet."""
        self._expecting, self._visible = True, False

    def mark_visible(self) -> None:
        """Mark the dialog, if any, as visible on the screen."""
        self._visible = self._expecting

    def ignore_keys_since(self, moment: float) -> None:
        """Ignore keys for a pause after `moment`, when the user last typed something else."""
        self._ignore_until = max(self._ignore_until, moment + TYPING_PAUSE_SECONDS)

    def accepts_keys(self) -> bool:
        """Return whether a key can be an answer now."""
        return self._visible and time.monotonic() >= self._ignore_until

    @property
    def feedback(self) -> str:
        """The last key, or a hint why it was ignored."""
        return self.pending_key or self._hint

    def press(self, key: str) -> None:
        """Handle a key press; `key` is empty if it is not one of the dialog's keys."""
        now = time.monotonic()
        burst, self._last_press = now - self._last_press < SINGLE_KEY_SECONDS, now
        if burst or self._timer:  # typed text, or a key that is held down
            self.discard_key()
            self.ignore_keys_since(now)
        elif not key and not self.accepts_keys():  # still typing
            self.ignore_keys_since(now)
        self._hint = "" if self.accepts_keys() else TYPING_HINT
        if self.accepts_keys():
            self._accept_key(key)

    def reject(self) -> None:
        """Handle input that is never an answer, such as Enter; a pending key stays pending."""
        if self._visible and not self.feedback:
            self._hint = UNKNOWN_KEY_HINT

    def _accept_key(self, key: str) -> None:
        if not key:
            self._hint = UNKNOWN_KEY_HINT
            return
        self.pending_key = key
        self._timer = self._call_later(SINGLE_KEY_SECONDS, self._deliver)

    def discard_key(self) -> None:
        """Drop the pending key."""
        if self._timer:
            self._timer.cancel()
        self._timer, self.pending_key = None, ""

    def reset(self) -> None:
        """Stop expecting an answer."""
        self.discard_key()
        self._expecting = self._visible = False
        self._hint = ""

    def _deliver(self) -> None:
        key = self.pending_key
        self.reset()
        self._on_answer(key)
