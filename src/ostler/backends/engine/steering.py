"""Words typed while a turn runs: put before the model between two steps, exactly once."""

from ostler.core.events import Delivered, Steered
from ostler.core.protocols import BackendContext


class SteeringQueue:
    """For one turn; each record is looked at once."""

    def __init__(self, context: BackendContext) -> None:
        self._context = context
        self._read_count = 0
        self._waiting: dict[str, None] = {}

    def undelivered(self) -> list[str]:
        """The ids of steering prompts that the model has not seen, in order."""
        records = self._context.records()
        for at in range(self._read_count, len(records)):
            if records.type_at(at) in ("steered", "delivered"):
                event = records[at].event
                if isinstance(event, Steered):
                    self._waiting[event.prompt.id] = None
                elif isinstance(event, Delivered):
                    self._waiting.pop(event.prompt_id, None)
        self._read_count = len(records)
        return list(self._waiting)

    def deliver(self) -> None:
        """Mark them as said here; the history then holds them at this place."""
        for prompt_id in self.undelivered():
            self._context.emit(Delivered(prompt_id))
