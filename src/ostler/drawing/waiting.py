"""Why nothing comes, as lines where none can be taken back: a silence is told ever more rarely, a retry each time."""

from ostler.text.sanitise import sanitise
from ostler.vocabulary.events import Event, Retrying, Waiting


def waiting_line(event: Event) -> str:
    """What an event says of waiting; nothing where it is about something else."""
    match event:
        case Waiting(_, reason):
            told = f"waiting: {reason}"
        case Retrying(attempt, seconds, reason):
            when = f"in {seconds:.0f} s" if round(seconds) else "at once"
            told = f"{reason}; trying again {when} (attempt {attempt})"
        case _:
            return ""
    return sanitise(told).replace("\n", " ")


class WaitingLines:
    """Feed it events; a silence that goes on is worth a line each time that it has doubled."""

    def __init__(self) -> None:
        self._told = 0.0

    def take(self, event: Event) -> list[str]:
        """The line to print, if any."""
        if isinstance(event, Waiting):
            if self._told <= event.seconds < 2 * self._told:
                return []
            self._told = event.seconds
        line = waiting_line(event)
        return [line] if line else []
