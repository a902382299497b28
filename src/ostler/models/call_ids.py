"""Ids for calls: each is new in its conversation, because a call runs once per id."""

from collections.abc import Iterable

from ostler.models.model_types import AssistantMessage, ModelRequest


class CallIds:
    """Hands out ids; `taken` are those that the conversation knows already."""

    def __init__(self, used: Iterable[str] = ()) -> None:
        self._used = set(used)

    def allocate(self, preferred: str = "") -> str:
        """The wanted id if it is new, else one that is."""
        number = len(self._used)
        while not preferred or preferred in self._used:
            preferred = f"call_{number}"
            number += 1
        self._used.add(preferred)
        return preferred


def used_call_ids(request: ModelRequest) -> Iterable[str]:
    """The ids of all calls that a request tells of."""
    return (call.id for said in request.history if isinstance(said, AssistantMessage) for call in said.message.calls)
