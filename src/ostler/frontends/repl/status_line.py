"""Builds the status line: what is running now, and agent, model, mode, context use, cost, sandbox and git branch."""

from collections.abc import Sequence

from ostler.core.display import DisplayText
from ostler.core.events import Event
from ostler.core.protocols import Session
from ostler.interaction.usage import UsageTracker
from ostler.rendering.transcript_renderer import TranscriptRenderer
from ostler.rendering.wait_notices import wait_notice
from ostler.text.sanitise import sanitise


class StatusLine:
    """The texts of the status line; `on_event` must receive every event."""

    def __init__(self, session: Session, usage: UsageTracker) -> None:
        self._session = session
        self.usage = usage
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

    def summary(self, environment_labels: Sequence[str], *, busy: bool, asking: bool, queued: int) -> str:
        """Return the summary in one line. The most important parts are first, because a narrow window truncates it."""
        parts = [
            *(["waiting for your answer" if asking else "working, Ctrl-C cancels"] if busy else []),
            *([f"{queued} queued"] if queued else []),
            *(value for value in (self.usage.option("agent"), self.usage.option("model")) if value),
            *([f"mode {mode}"] if (mode := self.usage.option("mode")) not in ("", "ask") else []),
            *([profile] if (profile := self.usage.option("profile")) not in ("", "balanced") else []),
            f"context {self.usage.context_usage}",
            *self._cost_label(),
            *environment_labels,
        ]
        return sanitise(" · ".join(parts)).replace("\n", " ")

    def _cost_label(self) -> list[str]:
        cost = self._session.state.cost
        return [f"${cost:.2f}"] if cost else []
