"""What a turn's records tell so far, each looked at once: its steps, what it used, and the newest of a kind."""

from ostler.core.events import Event, MessageDone, UsageReported
from ostler.core.protocols import BackendContext


class TurnStats:
    """Follows the records from where the turn begins; what came before is searched only when it is asked for."""

    def __init__(self, context: BackendContext) -> None:
        self._context = context
        self.start_index = len(context.records())
        self._read_count = self.start_index
        self._steps = 0
        self._usage: list[tuple[int, UsageReported]] = []
        self._latest: dict[str, int] = {}

    @property
    def steps(self) -> int:
        """The model's replies."""
        return self._refreshed()._steps

    def usage(self, since: int = 0) -> list[UsageReported]:
        """What model calls used, hidden ones too; or only those since a record."""
        return [event for at, event in self._refreshed()._usage if at >= since]

    def latest(self, event_type: str) -> Event | None:
        """The last event of a kind, of this turn or before it."""
        latest = self._refreshed()._latest
        records = self._context.records()
        if event_type not in latest:
            latest[event_type] = next(
                (at for at in reversed(range(self.start_index)) if records.type_at(at) == event_type), -1
            )
        return records[latest[event_type]].event if latest[event_type] >= 0 else None

    def _refreshed(self) -> "TurnStats":
        records = self._context.records()
        for at in range(self._read_count, len(records)):
            kind = records.type_at(at)
            self._latest[kind] = at
            event = records[at].event if kind in ("message_done", "usage_reported") else None
            if isinstance(event, MessageDone):
                self._steps += not event.message.continues
            elif isinstance(event, UsageReported):
                self._usage.append((at, event))
        self._read_count = len(records)
        return self
