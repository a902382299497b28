"""Ids for calls: each is new in its conversation, because a call runs once per id."""

from collections.abc import Iterable

from ostler.models.words import ModelSaid, Request


class CallIds:
    """Hands out ids; `taken` are those that the conversation knows already."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)

    def fresh(self, wanted: str = "") -> str:
        """The wanted id if it is new, else one that is."""
        number = len(self._taken)
        while not wanted or wanted in self._taken:
            wanted = f"call_{number}"
            number += 1
        self._taken.add(wanted)
        return wanted


def used_ids(request: Request) -> Iterable[str]:
    """The ids of all calls that a request tells of."""
    return (call.id for said in request.history if isinstance(said, ModelSaid) for call in said.message.calls)
