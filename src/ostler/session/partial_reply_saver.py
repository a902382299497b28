"""Saves replies while they grow, so that text on the screen survives a crash.

The text since the last save is appended, so a reply is written twice at most. Saves are limited by time and size.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress

import msgspec

from ostler.core.errors import JournalError
from ostler.core.events import Event, MessageDone, MessageSnapshot, PartialReply, TextDelta, ThoughtDelta, TurnEnded

SAVE_INTERVAL = 0.25  # seconds
MAX_UNSAVED = 8 * 1024  # characters


class _Unsaved(msgspec.Struct):
    """The text of a message that is not saved yet."""

    text: list[str] = []
    thought: list[str] = []
    restarts: bool = False


class PartialReplySaver:
    """Follows the deltas of a session and emits a `PartialReply` from time to time."""

    def __init__(self, emit: Callable[[Event], None]) -> None:
        self._emit = emit
        self._unsaved: dict[str, _Unsaved] = {}
        self._size = 0
        self._timer: asyncio.TimerHandle | None = None

    def on_event(self, event: Event) -> None:
        match event:
            case TextDelta(message_id, text):
                self._unsaved.setdefault(message_id, _Unsaved()).text.append(text)
                self._grow(len(text))
            case ThoughtDelta(message_id, text):
                self._unsaved.setdefault(message_id, _Unsaved()).thought.append(text)
                self._grow(len(text))
            case MessageSnapshot(message_id, text, thought):
                self._unsaved[message_id] = _Unsaved([text], [thought], restarts=True)
                self._grow(len(text) + len(thought))
            case MessageDone() | TurnEnded():
                self.stop()
            case _:
                pass

    def stop(self) -> None:
        """Drop the unsaved text: the complete message is saved, or no more can be saved."""
        self._unsaved.clear()
        self._size = 0
        if self._timer:
            self._timer.cancel()
            self._timer = None

    def _grow(self, size: int) -> None:
        self._size += size
        if self._size >= MAX_UNSAVED:
            self._save()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(SAVE_INTERVAL, self._save)

    def _save(self) -> None:
        unsaved = dict(self._unsaved)
        self.stop()
        with suppress(JournalError):  # the session ends the turn
            for message_id, new in unsaved.items():
                self._emit(PartialReply(message_id, "".join(new.text), "".join(new.thought), new.restarts))
