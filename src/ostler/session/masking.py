"""Masks known secrets in every event before it is saved, published or sent to the model.

Requests to the model are built from the persisted events, so they contain no known secret, and a resumed session sends
the same bytes again.
"""

from collections.abc import Iterable
from typing import Any, Literal, TypeVar

import msgspec

from ostler.core.events import Event, MessageDone, MessageSnapshot, Notice, TextDelta, ThoughtDelta, TurnEnded
from ostler.text.secret_masker import MASK_MARKER, SecretMasker
from ostler.wire.event_codec import encode_event

E = TypeVar("E", bound=Event)
MASKED_NOTICE = (
    f"a known secret appeared in this session; it was replaced by {MASK_MARKER} before anything was saved"
    " or sent to the model"
)


class MaskSecrets:
    """Masks these values in events."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._masker = SecretMasker(values)

    def __call__(self, event: E) -> E:
        """Return the event with all secrets masked, or the same object if it contains none."""
        if not self._masker or not self._masker.occurs_in(encode_event(event)):
            return event
        masked: E = _mask_value(event, self._masker)
        return masked if masked != event else event

    def partial_secret_length(self, text: str) -> int:
        """Return how many characters at the end of the text may be the start of a secret."""
        return self._masker.partial_secret_length(text) if self._masker else 0


mask_nothing = MaskSecrets()  # used when no secret is known


class SessionMasking:
    """Masks the events of one session, and reports once that it did.

    The end of streamed text is held back while it may be the start of a secret, which the next delta completes. The
    complete message has all text, so what is still held back then is dropped.
    """

    def __init__(self, mask: MaskSecrets) -> None:
        self._mask = mask
        self._held: dict[tuple[type, str], str] = {}
        self._notice_state: Literal["none", "due", "sent"] = "none"

    def apply(self, event: Event) -> Event | None:
        """Return the masked event, or None for a delta of which nothing can be published now."""
        ready = self._hold_back(event)
        if isinstance(ready, TextDelta | ThoughtDelta) and not ready.text:
            return None
        masked = self._mask(ready)
        if masked is not ready and self._notice_state == "none":
            self._notice_state = "due"
        return masked

    def take_notice(self) -> Notice | None:
        """Return the notice if it is due."""
        if self._notice_state != "due":
            return None
        self._notice_state = "sent"
        return Notice("warning", MASKED_NOTICE)

    def _hold_back(self, event: E) -> E:
        """Return the event, with the text that can be published now."""
        match event:
            case TextDelta(message_id, text) | ThoughtDelta(message_id, text):
                key = (type(event), message_id)
                text = self._held.pop(key, "") + text
                length = self._mask.partial_secret_length(text)
                if length:
                    self._held[key], text = text[-length:], text[:-length]
                return event if text == event.text else msgspec.structs.replace(event, text=text)
            case MessageSnapshot() | MessageDone() | TurnEnded():
                self._held.clear()
            case _:
                pass
        return event


def _mask_value(value: Any, secrets: SecretMasker) -> Any:
    """Return a copy of a value of any shape with the secrets in its strings masked."""
    match value:
        case str():
            return secrets.mask(value)
        case msgspec.Struct():
            fields = {name: _mask_value(getattr(value, name), secrets) for name in value.__struct_fields__}
            return msgspec.structs.replace(value, **fields)
        case dict():
            return {_mask_value(key, secrets): _mask_value(item, secrets) for key, item in value.items()}
        case list():
            return [_mask_value(item, secrets) for item in value]
        case tuple():
            return tuple(_mask_value(item, secrets) for item in value)
        case _:
            return value
