"""What stands below the prompt: who thinks, how full the context is, what it cost, what holds commands, and where."""

from collections.abc import Sequence

from ostler.commands.usage import UsageTracker
from ostler.core.display import DisplayText
from ostler.core.events import Event
from ostler.core.protocols import Session
from ostler.rendering.transcript_renderer import TranscriptRenderer
from ostler.rendering.wait_notices import wait_notice
from ostler.text.sanitise import sanitise


class StatusLine:
    """Hears every event; told in lines."""

    def __init__(self, session: Session, usage: UsageTracker) -> None:
        self._session = session
        self._usage = usage
        self._waiting = ""
        self.environment_labels: Sequence[str] = ()

    def on_event(self, event: Event) -> None:
        self._waiting = wait_notice(event)

    def activity(self, scroll: TranscriptRenderer) -> str:
        """What is going on right now: the line being said, what subagents do, or what a command printed last."""
        if self._waiting:
            return self._waiting
        if scroll.partial_line:
            return scroll.partial_line
        if children := self._usage.subagents.lines():
            return " | ".join(children)
        running = scroll.calls.running
        notes = [part.text for part in running.display.blocks if isinstance(part, DisplayText)] if running else []
        return sanitise(notes[-1][-2000:]).rstrip("\n").rpartition("\n")[2] if notes else ""

    def summary(self, *, busy: bool, asking: bool, queued: int) -> str:
        """What stays, in one line; what matters now comes first, where a narrow window cuts nothing off."""
        words = [
            *(["waiting for your answer" if asking else "working, Ctrl-C cancels"] if busy else []),
            *([f"{queued} queued"] if queued else []),
            *(word for word in (self._usage.option("agent"), self._usage.option("model")) if word),
            *([profile] if (profile := self._usage.option("profile")) not in ("", "balanced") else []),
            f"context {self._usage.context_usage}",
            *self._cost_label(),
            *self.environment_labels,
        ]
        return sanitise(" · ".join(words)).replace("\n", " ")

    def _cost_label(self) -> list[str]:
        cost = self._session.state.cost
        return [f"${cost:.2f}"] if cost else []
