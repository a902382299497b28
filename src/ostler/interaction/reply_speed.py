"""Measures how fast the model writes, in tokens per second."""

from ostler.core.events import Envelope, TextDelta, ThoughtDelta, TurnStarted, UsageReported

CHARS_PER_TOKEN = 4  # an estimate, until the model reports the tokens
MIN_SECONDS = 0.2


class ReplySpeed:
    """The speed of the reply that is being received or was received last. It must receive every new event."""

    def __init__(self) -> None:
        self.tokens_per_second = 0.0
        self._started = 0.0
        self._chars = 0

    def on_event(self, envelope: Envelope) -> None:
        match envelope.event:
            case TurnStarted():
                self._started, self._chars = 0.0, 0
            case TextDelta(_, text) | ThoughtDelta(_, text):
                self._started = self._started or envelope.time
                self._chars += len(text)
                self._set(self._chars / CHARS_PER_TOKEN, envelope.time)
            case UsageReported(tokens_out=tokens, child_id="") if self._started:
                self._set(tokens, envelope.time)
                self._started, self._chars = 0.0, 0
            case _:
                pass

    def _set(self, tokens: float, now: float) -> None:
        seconds = now - self._started
        if tokens and seconds >= MIN_SECONDS:
            self.tokens_per_second = tokens / seconds
