"""Ends the turn when a reply was truncated, refused or filtered."""

from ostler.core.errors import Fault
from ostler.core.events import TurnEnded

_DECLINED = Fault("refusal", "the model declined to answer", "rephrase the request or switch to another model")
_FILTERED = Fault(
    "refusal",
    "the provider's content filter stopped the reply; it is incomplete",
    "rephrase the request or switch to another model",
)


def early_turn_end(finish_reason: str) -> TurnEnded | None:
    """Return the end of the turn if the reply's finish reason requires one."""
    match finish_reason:
        case "length":
            return TurnEnded("", "limit", limit="the model's longest reply")
        case "refusal":
            return TurnEnded("", "failed", _DECLINED)
        case "filtered":
            return TurnEnded("", "failed", _FILTERED)
        case _:
            return None
