"""Steps, usage and latest events of the running turn."""

from ostler.core.events import Event, MessageDone, UsageReported
from ostler.core.protocols import BackendContext


class TurnStats:
    """Reads each record of the turn once; earlier records are searched only on demand."""

    def __init__(self, context: BackendContext, start_index: int | None = None) -> None:
        """`start_index` is the index of the first record of a turn that is continued."""
        self._context = context
        self.start_index = len(context.records()) if start_index is None else start_index
        self._read_count = self.start_index
        self._steps = 0
        self._usage: list[tuple[int, UsageReported]] = []
        self._latest: dict[str, int] = {}

    @property
    def steps(self) -> int:
        """The number of model replies."""
        return self._refreshed()._steps

    def usage(self, since: int = 0) -> list[UsageReported]:
        """Return the usage of all model calls, including internal ones, since record index `since`."""
        return [event for index, event in self._refreshed()._usage if index >= since]

    def latest(self, event_type: str) -> Event | None:
        """Return the latest event of a type, from this turn or earlier."""
        latest = self._refreshed()._latest
        records = self._context.records()
        if event_type not in latest:
            latest[event_type] = next(
                (index for index in reversed(range(self.start_index)) if records.type_at(index) == event_type), -1
            )
        return records[latest[event_type]].event if latest[event_type] >= 0 else None

    def _refreshed(self) -> "TurnStats":
        records = self._context.records()
        for index in range(self._read_count, len(records)):
            kind = records.type_at(index)
            self._latest[kind] = index
            event = records[index].event if kind in ("message_done", "usage_reported") else None
            if isinstance(event, MessageDone):
                self._steps += not event.message.continues
            elif isinstance(event, UsageReported):
                self._usage.append((index, event))
        self._read_count = len(records)
        return self
