"""What a turn's records tell so far, each looked at once: its steps, what it used, and the newest of a kind."""

from ostler.vocabulary.events import Event, MessageDone, UsageReported
from ostler.vocabulary.seams import Stage


class Tally:
    """Follows the records from where the turn begins; what came before is searched only when it is asked for."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.begun = len(stage.records())
        self._read = self.begun
        self._steps = 0
        self._usage: list[tuple[int, UsageReported]] = []
        self._latest: dict[str, int] = {}

    @property
    def steps(self) -> int:
        """The model's replies."""
        return self._followed()._steps

    def usage(self, since: int = 0) -> list[UsageReported]:
        """What model calls used, hidden ones too; or only those since a record."""
        return [event for at, event in self._followed()._usage if at >= since]

    def newest(self, kind: str) -> Event | None:
        """The last event of a kind, of this turn or before it."""
        latest = self._followed()._latest
        records = self._stage.records()
        if kind not in latest:
            latest[kind] = next((at for at in reversed(range(self.begun)) if records.kind(at) == kind), -1)
        return records[latest[kind]].event if latest[kind] >= 0 else None

    def _followed(self) -> "Tally":
        records = self._stage.records()
        for at in range(self._read, len(records)):
            kind = records.kind(at)
            self._latest[kind] = at
            event = records[at].event if kind in ("message_done", "usage_reported") else None
            if isinstance(event, MessageDone):
                self._steps += not event.message.continues
            elif isinstance(event, UsageReported):
                self._usage.append((at, event))
        self._read = len(records)
        return self
