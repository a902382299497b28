"""Decides which key press is the answer to an approval request, so that keys typed for something else are not.

An answer is a single key press after a pause in typing. If the user was idle, it is effective after a short pause, in
which no other key is pressed, or with Enter. If a draft exists or something was typed just before, it needs Enter.
Lasting answers always need Enter. All other characters are text that was not meant for the dialog, and are returned to
the draft, with the letter that they follow.
"""

import time
from collections.abc import Callable, Collection, Mapping
from typing import Protocol

TYPING_PAUSE_SECONDS = 2.0  # longer than the time between two keys of a slow typist
REACTION_SECONDS = 0.3  # a key so soon after the dialog appeared was not pressed because of it
ANSWER_PAUSE_SECONDS = 0.6  # no other key may follow an answer within this time: it would be the start of a text
STEP_PAUSE_SECONDS = 0.1  # the same for steps of a dialog in quick succession
UNKNOWN_KEY_HINT = "press one of these keys"
TYPING_HINT = "you were typing: pause, then a key and Enter"
CONFIRM_HINT = "press Enter to confirm"
WAIT_HINT = "press Enter to confirm, or wait"


class Timer(Protocol):
    def cancel(self) -> None: ...


class AnswerKeyFilter:
    """Filters the keys for one dialog at a time."""

    def __init__(
        self,
        on_answer: Callable[[str], None],
        on_text: Callable[[str], None],
        call_later: Callable[[float, Callable[[], None]], Timer],
    ) -> None:
        """`on_answer` receives each answer, `on_text` other text; `call_later` schedules a call after some seconds."""
        self._on_answer = on_answer
        self._on_text = on_text
        self._call_later = call_later
        self._timer: Timer | None = None
        self._expecting = self._visible = self._quick = False
        self._confirmed_keys: Collection[str] = ()
        self._labels: Mapping[str, str] = {}
        self._visible_at = self._last_press = float("-inf")
        self._typed_at = float("-inf")  # when the last key that is not an answer was pressed
        self._is_typing = False  # the last key was part of a text
        self._has_text = False  # a draft exists, so that the next key may be part of it
        self.pending_key = ""  # becomes the answer unless another key follows
        self._pending_text = ""
        self._is_refused = False  # the pending key cannot become the answer
        self._hint = ""

    def expect_answer(
        self, confirmed_keys: Collection[str] = (), labels: Mapping[str, str] | None = None, *, quick: bool = False
    ) -> None:
        """Start expecting an answer; the dialog is not visible yet.

        `confirmed_keys` need Enter. `labels` say what the keys do. `quick` is for steps of a dialog that are answered
        in quick succession.
        """
        self._expecting, self._visible = True, False
        self._confirmed_keys, self._labels, self._quick = confirmed_keys, labels or {}, quick

    def mark_visible(self) -> None:
        """Mark the dialog, if any, as visible on the screen."""
        if self._expecting and not self._visible:
            self._visible, self._visible_at = True, time.monotonic()

    def note_keys_elsewhere(self, moment: float, *, has_text: bool) -> None:
        """Record when the last key outside the dialog was pressed, and whether the typed text was not sent."""
        if moment > self._last_press:  # not the answer to the previous dialog
            self._last_press = self._typed_at = moment
        self._is_typing = self._is_typing or has_text
        self._has_text = self._has_text or has_text

    @property
    def feedback(self) -> str:
        """The effect of the pending key, or a hint why the last key was ignored."""
        label = self._labels.get(self.pending_key, "")
        key = f"{self.pending_key}: {label} …" if label else self.pending_key
        return f"{key} {self._hint}".strip()

    @property
    def short_feedback(self) -> str:
        """The feedback without the label of the pending key, for narrow windows."""
        return f"{self.pending_key}: {self._hint}" if self.pending_key and self._hint else self.feedback

    def press(self, key: str, text: str, refusal: str = "") -> None:
        """Handle a key press that types `text`; `key` is empty if it is not one of the dialog's keys.

        With `refusal`, the reason why the key cannot be the answer now, it is only text if another key follows.
        """
        now = time.monotonic()
        silent = now - self._last_press >= TYPING_PAUSE_SECONDS
        if key and self._visible and (silent or not (self._is_typing or self.pending_key)):
            self.discard_key()
            if refusal:
                self._start_refusal(key, text, refusal)
            else:
                self._start_answer(key, text, self._waiting_seconds(key, now, silent=silent))
        else:
            self.add_text(text)
        self._last_press = now

    def add_text(self, text: str) -> None:
        """Handle text that is not an answer: return it, after the pending key, to the draft."""
        self.discard_key()
        self._return_text(text)
        self._last_press = time.monotonic()

    def confirm(self) -> None:
        """Handle Enter: the pending key is the answer."""
        self._last_press = time.monotonic()
        if self._is_refused:
            return
        if self.pending_key:
            self._deliver()
        elif self._visible:
            self._hint = TYPING_HINT if self._is_typing else UNKNOWN_KEY_HINT

    def delete_key(self) -> bool:
        """Handle Backspace: drop the pending key. Return whether there was one."""
        had_key, self._pending_text = bool(self.pending_key), ""
        self.discard_key()
        self._last_press = time.monotonic()
        return had_key

    def discard_key(self) -> None:
        """Return the pending key, if any, to the draft."""
        if self._timer:
            self._timer.cancel()
        text, self._timer, self.pending_key, self._pending_text = self._pending_text, None, "", ""
        self._is_refused = False
        if text:
            self._return_text(text)

    def drop_refused_key(self) -> None:
        """Drop a refused key: no other key followed soon, or the user did what the refusal says."""
        if self._is_refused:
            self._pending_text = ""
            self.discard_key()

    def reset(self) -> None:
        """Stop expecting an answer."""
        self.discard_key()
        self._expecting = self._visible = False
        self._hint = ""

    def forget_text(self) -> None:
        """Forget what was typed: the draft is in the editor again."""
        self._is_typing = self._has_text = False

    def _waiting_seconds(self, key: str, now: float, *, silent: bool) -> float:
        """Return the time without another key after which a key is the answer; 0 if it needs Enter."""
        if key in self._confirmed_keys:
            return 0
        if self._quick and not self._has_text:
            return ANSWER_PAUSE_SECONDS if silent and key.isalpha() else STEP_PAUSE_SECONDS
        if self._quick:
            return TYPING_PAUSE_SECONDS
        if self._has_text or now - self._typed_at < TYPING_PAUSE_SECONDS:
            return 0
        if not silent:  # just after another answer
            return TYPING_PAUSE_SECONDS
        return ANSWER_PAUSE_SECONDS if now - self._visible_at >= REACTION_SECONDS else 0

    def _start_refusal(self, key: str, text: str, refusal: str) -> None:
        self.pending_key, self._pending_text, self._hint = key, text, refusal
        self._is_refused = True
        self._timer = self._call_later(TYPING_PAUSE_SECONDS, self.drop_refused_key)

    def _start_answer(self, key: str, text: str, seconds: float) -> None:
        self.pending_key, self._pending_text = key, text
        if not seconds:
            self._hint = CONFIRM_HINT
            return
        self._hint = WAIT_HINT if seconds == TYPING_PAUSE_SECONDS else ""
        self._timer = self._call_later(seconds, self._deliver)

    def _return_text(self, text: str) -> None:
        self._is_typing = self._has_text = True
        self._typed_at = time.monotonic()
        self._hint = TYPING_HINT if self._expecting else ""
        self._on_text(text)

    def _deliver(self) -> None:
        key, self._pending_text = self.pending_key, ""
        self.reset()
        self._is_typing = False
        self._on_answer(key)
