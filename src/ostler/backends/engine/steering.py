"""Delivers steering prompts to the model between two steps, each once."""

from ostler.core.events import Delivered, Steered, TurnStarted
from ostler.core.protocols import BackendContext


class SteeringQueue:
    """The steering prompts of one turn; each record is read once."""

    def __init__(self, context: BackendContext) -> None:
        self._context = context
        self._read_count = 0
        self._waiting: dict[str, None] = {}

    def undelivered(self) -> list[str]:
        """Return the ids of steering prompts that the model has not seen, in order."""
        records = self._context.records()
        for index in range(self._read_count, len(records)):
            kind = records.type_at(index)
            if kind in ("steered", "delivered") or (kind == "turn_started" and self._waiting):
                event = records[index].event
                if isinstance(event, Steered):
                    self._waiting[event.prompt.id] = None
                elif isinstance(event, Delivered):
                    self._waiting.pop(event.prompt_id, None)
                elif isinstance(event, TurnStarted):
                    self._waiting.pop(event.prompt.id, None)
        self._read_count = len(records)
        return list(self._waiting)

    def deliver(self) -> None:
        """Mark them as delivered; the history then contains them at this point."""
        for prompt_id in self.undelivered():
            self._context.emit(Delivered(prompt_id))
