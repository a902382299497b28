"""Renders waiting and retry events; repeats a wait notice only when its duration has doubled."""

from ostler.core.events import Event, Retrying, Waiting
from ostler.text.sanitise import sanitise


def wait_notice(event: Event) -> str:
    """Return the notice for a waiting or retry event, or an empty string for other events."""
    match event:
        case Waiting(_, reason):
            text = f"waiting: {reason}"
        case Retrying(attempt, seconds, reason):
            when = f"in {seconds:.0f} s" if round(seconds) else "now"
            text = f"{reason}; retrying {when} (attempt {attempt})"
        case _:
            return ""
    return sanitise(text).replace("\n", " ")


class WaitNotices:
    """Renders waiting and retry events, for output that cannot be overwritten."""

    def __init__(self) -> None:
        self._last_reported = 0.0

    def render(self, event: Event) -> list[str]:
        """Return the line to print, if any."""
        if isinstance(event, Waiting):
            if self._last_reported <= event.seconds < 2 * self._last_reported:
                return []
            self._last_reported = event.seconds
        line = wait_notice(event)
        return [line] if line else []
