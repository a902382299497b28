"""Takes the secrets that are in use out of every event, before anyone keeps it, shows it or thinks about it.

What a model is told is a fold over the kept events: so no known secret leaves in a request, and a resumed session sends
the same bytes again.
"""

from collections.abc import Iterable
from typing import Any, Protocol, TypeVar

import msgspec

from ostler.core.events import Event
from ostler.text.secret_masker import MASK_MARKER, SecretMasker
from ostler.wire.event_codec import encode_event

E = TypeVar("E", bound=Event)
MASKED_NOTICE = f"a secret that is in use came up here; the model and the session are told {MASK_MARKER} in its place"


class MaskSecrets(Protocol):
    """The same event without what nobody may be told; itself where it holds nothing of that."""

    def __call__(self, event: E) -> E: ...


def mask_nothing(event: E) -> E:
    """Where no secret is known."""
    return event


def make_mask(values: Iterable[str]) -> MaskSecrets:
    """What takes these values out of an event."""
    withheld = SecretMasker(values)
    if not withheld:
        return mask_nothing

    def conceal(event: E) -> E:
        if not withheld.occurs_in(encode_event(event)):
            return event
        concealed: E = _mask_value(event, withheld)
        return concealed if concealed != event else event

    return conceal


def _mask_value(value: Any, secrets: SecretMasker) -> Any:
    """The same of any shape, with the mark in its texts; what kind of event it is stays as it is."""
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
