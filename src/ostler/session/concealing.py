"""Takes the secrets that are in use out of every event, before anyone keeps it, shows it or thinks about it.

What a model is told is a fold over the kept events: so no known secret leaves in a request, and a resumed session sends
the same bytes again.
"""

from collections.abc import Iterable
from typing import Any, Protocol, TypeVar

import msgspec

from ostler.text.withheld import MARK, Withheld
from ostler.vocabulary.events import Event
from ostler.wire.codec import encode_event

E = TypeVar("E", bound=Event)
WITHHELD = f"a secret that is in use came up here; the model and the session are told {MARK} in its place"


class Conceal(Protocol):
    """The same event without what nobody may be told; itself where it holds nothing of that."""

    def __call__(self, event: E) -> E: ...


def conceal_nothing(event: E) -> E:
    """Where no secret is known."""
    return event


def concealing(values: Iterable[str]) -> Conceal:
    """What takes these values out of an event."""
    withheld = Withheld(values)
    if not withheld:
        return conceal_nothing

    def conceal(event: E) -> E:
        if not withheld.found_in(encode_event(event)):
            return event
        concealed: E = _without(event, withheld)
        return concealed if concealed != event else event

    return conceal


def _without(value: Any, withheld: Withheld) -> Any:
    """The same of any shape, with the mark in its texts; what kind of event it is stays as it is."""
    match value:
        case str():
            return withheld.out_of(value)
        case msgspec.Struct():
            fields = {name: _without(getattr(value, name), withheld) for name in value.__struct_fields__}
            return msgspec.structs.replace(value, **fields)
        case dict():
            return {_without(key, withheld): _without(item, withheld) for key, item in value.items()}
        case list():
            return [_without(item, withheld) for item in value]
        case tuple():
            return tuple(_without(item, withheld) for item in value)
        case _:
            return value
