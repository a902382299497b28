"""Read-only views of the stored records of a session and of its current state."""

from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from typing import Protocol

from ostler.core.events import (
    Envelope,
    Event,
    PermissionAsked,
    QuestionAsked,
    ServerStateChanged,
    ToolStarted,
    TurnStarted,
)
from ostler.core.permission import Rule
from ostler.core.tools import Todo, ToolResult


class SessionView(Protocol):
    """The current state of a session, folded from its persisted events."""

    @property
    def title(self) -> str: ...

    @property
    def turn(self) -> TurnStarted | None:
        """The start of the running turn."""

    @property
    def todos(self) -> Sequence[Todo]: ...

    @property
    def asks(self) -> Mapping[str, PermissionAsked]: ...

    @property
    def questions(self) -> Mapping[str, QuestionAsked]: ...

    @property
    def rules(self) -> Sequence[Rule]: ...

    @property
    def servers(self) -> Mapping[str, ServerStateChanged]:
        """The latest state of each external server, by its name."""

    @property
    def cost(self) -> float | None: ...

    @property
    def queued(self) -> Sequence[str]:
        """The prompts to send after the running turn, as last saved."""

    @property
    def undelivered(self) -> Collection[str]:
        """The ids of the prompts that were sent to a turn and not given to the model yet."""


class Records(Protocol):
    """The records of a session in order. A record is decoded on access, so check `type_at` first."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Envelope: ...

    def __iter__(self) -> Iterator[Envelope]: ...

    def type_at(self, index: int) -> str:
        """Return the event type's name."""

    def indexes_of(self, types: Container[str]) -> Iterator[int]:
        """Yield the indexes of the records of these types, in order."""

    def index_after(self, seq: int) -> int:
        """Return the index of the first record after number `seq`."""

    def result(self, call_id: str) -> ToolResult | None:
        """Return the result of a call, or None if it has none or was reverted."""

    def result_seq(self, call_id: str) -> int | None:
        """Return the number of the record with a call's result, also if it was reverted."""


def find_start(records: Records, call_id: str, *, in_any_turn: bool = False) -> ToolStarted | None:
    """Return the latest start of a call, only in the latest turn unless `in_any_turn`, or None if there is none."""
    for index in reversed(range(len(records))):
        kind = records.type_at(index)
        if kind == "turn_started" and not in_any_turn:
            return None
        event = records[index].event if kind == "tool_started" else None
        if isinstance(event, ToolStarted) and event.call_id == call_id:
            return event
    return None


def latest_event(records: Records, event_type: str) -> Event | None:
    """Return the latest event of a type, or None; events of other types are not decoded."""
    index = max(records.indexes_of((event_type,)), default=None)
    return None if index is None else records[index].event
