"""Assigns tool call ids that are unique in a conversation."""

from collections.abc import Iterable

from ostler.models.model_types import AssistantMessage, ModelRequest


class CallIds:
    """Allocates call ids; a call runs once per id. `used` are the ids already in the conversation."""

    def __init__(self, used: Iterable[str] = ()) -> None:
        self._used = set(used)

    def allocate(self, preferred: str = "") -> str:
        """Return `preferred` if it is unused, else a new id."""
        number = len(self._used)
        while not preferred or preferred in self._used:
            preferred = f"call_{number}"
            number += 1
        self._used.add(preferred)
        return preferred


def used_call_ids(request: ModelRequest) -> Iterable[str]:
    """Return the ids of all calls in a request's history."""
    return (call.id for entry in request.history if isinstance(entry, AssistantMessage) for call in entry.message.calls)
