"""Replies that end a turn whatever they hold: cut by their length, declined, or held back by somebody's filter."""

from ostler.core.errors import Fault
from ostler.core.events import TurnEnded

_DECLINED = Fault("refusal", "the model declined to answer", "ask in other words, or take another model")
_FILTERED = Fault(
    "refusal",
    "the provider's content filter cut the reply off, so it is not whole",
    "ask in other words, or take another model",
)


def early_turn_end(finish_reason: str) -> TurnEnded | None:
    """The end of the turn, if the way in which a reply ended is one."""
    match finish_reason:
        case "length":
            return TurnEnded("", "limit", limit="the model's longest reply")
        case "refusal":
            return TurnEnded("", "failed", _DECLINED)
        case "filtered":
            return TurnEnded("", "failed", _FILTERED)
        case _:
            return None
