"""Why nothing comes, as lines where none can be taken back: a silence is told ever more rarely, a retry each time."""

from ostler.core.events import Event, Retrying, Waiting
from ostler.text.sanitise import sanitise


def wait_notice(event: Event) -> str:
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


class WaitNotices:
    """Feed it events; a silence that goes on is worth a line each time that it has doubled."""

    def __init__(self) -> None:
        self._last_reported = 0.0

    def render(self, event: Event) -> list[str]:
        """The line to print, if any."""
        if isinstance(event, Waiting):
            if self._last_reported <= event.seconds < 2 * self._last_reported:
                return []
            self._last_reported = event.seconds
        line = wait_notice(event)
        return [line] if line else []
