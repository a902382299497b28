"""Builds the activity of the status line: what is running now."""

from ostler.core.display import DisplayText
from ostler.core.events import Event
from ostler.core.protocols import Session
from ostler.interaction.status import StatusSummary
from ostler.interaction.usage import UsageTracker
from ostler.rendering.transcript_renderer import TranscriptRenderer
from ostler.rendering.wait_notices import wait_notice
from ostler.text.sanitise import sanitise


class StatusLine(StatusSummary):
    """The texts of the status line; `on_event` must receive every event."""

    def __init__(self, session: Session, usage: UsageTracker) -> None:
        super().__init__(session, usage)
        self._waiting = ""

    def on_event(self, event: Event) -> None:
        self._waiting = wait_notice(event)

    def activity(self, scroll: TranscriptRenderer) -> str:
        """Return the current activity: a wait, the streaming line, the subagents, or the last output of a command."""
        if self._waiting:
            return self._waiting
        if scroll.partial_line:
            return scroll.partial_line
        if children := self.usage.subagents.lines():
            return " | ".join(children)
        running = scroll.calls.running
        notes = [part.text for part in running.display.blocks if isinstance(part, DisplayText)] if running else []
        return sanitise(notes[-1][-2000:]).rstrip("\n").rpartition("\n")[2] if notes else ""
