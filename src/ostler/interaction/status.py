"""The summary of a session's status: agent, model, mode, context use, cost, sandbox and git branch."""

from collections.abc import Sequence

from ostler.core.protocols import Session
from ostler.interaction.usage import UsageTracker
from ostler.text.sanitise import sanitise


class StatusSummary:
    """Builds the summary. `environment_labels` are set by the frontend, because computing them takes time."""

    def __init__(self, session: Session, usage: UsageTracker) -> None:
        self._session = session
        self.usage = usage
        self.environment_labels: Sequence[str] = ()

    def summary(self, *, busy: bool, asking: bool, queued: int) -> str:
        """Return the summary in one line. The most important parts are first, because a narrow window truncates it."""
        parts = [
            *(["waiting for your answer" if asking else "working, Ctrl-C cancels"] if busy else []),
            *([f"{queued} queued"] if queued else []),
            *(value for value in (self.usage.option("agent"), self.usage.option("model")) if value),
            *([f"mode {mode}"] if (mode := self.usage.option("mode")) not in ("", "ask") else []),
            *([profile] if (profile := self.usage.option("profile")) not in ("", "balanced") else []),
            f"context {self.usage.context_usage}",
            *self._cost_label(),
            *self.environment_labels,
        ]
        return sanitise(" · ".join(parts)).replace("\n", " ")

    def _cost_label(self) -> list[str]:
        cost = self._session.state.cost
        return [f"${cost:.2f}"] if cost else []
