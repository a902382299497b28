"""Takes the secrets that are in use out of every event, before anyone keeps it, shows it or thinks about it.

What a model is told is a fold over the kept events: so no known secret leaves in a request, and a resumed session sends
the same bytes again.
"""

from collections.abc import Callable, Iterable

from ostler.text.withheld import MARK, Withheld
from ostler.vocabulary.events import Event
from ostler.wire.codec import decode_event, encode_event

Conceal = Callable[[Event], Event]
WITHHELD = f"a secret that is in use came up here; the model and the session are told {MARK} in its place"


def conceal_nothing(event: Event) -> Event:
    """Where no secret is known."""
    return event


def concealing(values: Iterable[str]) -> Conceal:
    """What takes these values out of an event."""
    withheld = Withheld(values)
    if not withheld:
        return conceal_nothing

    def conceal(event: Event) -> Event:
        data = encode_event(event)
        return decode_event(withheld.out_of(data)) if withheld.found_in(data) else event

    return conceal
