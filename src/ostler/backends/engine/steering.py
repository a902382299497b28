"""Words typed while a turn runs: put before the model between two steps, exactly once."""

from ostler.vocabulary.events import Delivered, Steered
from ostler.vocabulary.seams import Stage


class Steering:
    """For one turn; each record is looked at once."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._read = 0
        self._waiting: dict[str, None] = {}

    def undelivered(self) -> list[str]:
        """The ids of steering prompts that the model has not seen, in order."""
        records = self._stage.records()
        for at in range(self._read, len(records)):
            if records.kind(at) in ("steered", "delivered"):
                event = records[at].event
                if isinstance(event, Steered):
                    self._waiting[event.prompt.id] = None
                elif isinstance(event, Delivered):
                    self._waiting.pop(event.prompt_id, None)
        self._read = len(records)
        return list(self._waiting)

    def deliver(self) -> None:
        """Mark them as said here; the history then holds them at this place."""
        for prompt_id in self.undelivered():
            self._stage.emit(Delivered(prompt_id))
