"""Masks known secrets in every event before it is saved, published or sent to the model.

Requests to the model are built from the persisted events, so they contain no known secret, and a resumed session sends
the same bytes again.
"""

from collections.abc import Iterable
from typing import Any, Protocol, TypeVar

import msgspec

from ostler.core.events import Event
from ostler.text.secret_masker import MASK_MARKER, SecretMasker
from ostler.wire.event_codec import encode_event

E = TypeVar("E", bound=Event)
MASKED_NOTICE = (
    f"a known secret appeared in this session; it was replaced by {MASK_MARKER} before anything was saved"
    " or sent to the model"
)


class MaskSecrets(Protocol):
    """Return the event with all secrets masked, or the same object if it contains none."""

    def __call__(self, event: E) -> E: ...


def mask_nothing(event: E) -> E:
    """Return the event unchanged; used when no secret is known."""
    return event


def make_mask(values: Iterable[str]) -> MaskSecrets:
    """Return a function that masks these values in an event."""
    masker = SecretMasker(values)
    if not masker:
        return mask_nothing

    def mask(event: E) -> E:
        if not masker.occurs_in(encode_event(event)):
            return event
        masked: E = _mask_value(event, masker)
        return masked if masked != event else event

    return mask


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
