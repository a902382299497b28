"""Tracks tokens, context size, chosen options and running subagents of a session from its events."""

import msgspec

from ostler.core.events import (
    ChildEnded,
    ChildProgress,
    ChildStarted,
    Event,
    InfoChanged,
    OptionChanged,
    TurnEnded,
    UsageReported,
)
from ostler.text.sanitise import sanitise


class _Subagent(msgspec.Struct):
    name: str
    progress: ChildProgress | None = None


class SubagentTracker:
    """Tracks the running subagents, the most recently active last. It must receive every event of the session."""

    def __init__(self) -> None:
        self._running: dict[str, _Subagent] = {}

    def on_event(self, event: Event) -> None:
        match event:
            case ChildStarted(child_id, _, agent, title):
                self._running[child_id] = _Subagent(f"{agent} {title}".rstrip())
            case ChildProgress(child_id) if child := self._running.pop(child_id, None):
                child.progress = event
                self._running[child_id] = child
            case ChildEnded(child_id):
                self._running.pop(child_id, None)
            case TurnEnded():
                self._running.clear()
            case _:
                pass

    def lines(self) -> list[str]:
        """Return a line for each running subagent: task, state, last call, tokens and cost."""
        return [sanitise(" · ".join(_status_parts(child))).replace("\n", " ") for child in self._running.values()]


def _status_parts(child: _Subagent) -> list[str]:
    progress = child.progress
    if progress is None:
        return [child.name, "starting"]
    state = f"{progress.state.replace('_', ' ')}{f' ({progress.last})' if progress.last else ''}"
    return [child.name, state, f"{progress.tokens} tokens", *([f"${progress.cost:.4f}"] if progress.cost else [])]


class UsageTracker:
    """Tracks the usage of one session. It must receive every event of the session."""

    def __init__(self) -> None:
        self._options: dict[str, str] = {}
        self._selected: dict[str, str] = {}
        self.subagents = SubagentTracker()
        self.context_used = 0
        self.context_limit = 0
        self.tokens_in = 0
        self.tokens_out = 0
        self.tokens_cached = 0

    def on_event(self, event: Event) -> None:
        self.subagents.on_event(event)
        match event:
            case UsageReported():
                self.context_used, self.context_limit = (
                    event.context_used or self.context_used,
                    event.context_limit or self.context_limit,
                )
                self.tokens_in += event.tokens_in
                self.tokens_out += event.tokens_out
                self.tokens_cached += event.tokens_cached
            case OptionChanged(option_id, value):
                self._options[option_id] = self._selected[option_id] = value
            case InfoChanged(info):
                self._options.update({option.id: option.value for option in info.options if option.value})
            case _:
                pass

    def option(self, name: str) -> str:
        """Return the current value of an option, or an empty string."""
        return self._options.get(name, "")

    def selected(self, name: str) -> str:
        """Return the value that was selected for an option, or an empty string if it has its default."""
        return self._selected.get(name, "")

    @property
    def context_usage(self) -> str:
        """The context usage as text: a percentage if the limit is known, else tokens."""
        if not self.context_used:
            return "empty"
        return f"{self.context_used / self.context_limit:.0%}" if self.context_limit else f"{self.context_used} tokens"
