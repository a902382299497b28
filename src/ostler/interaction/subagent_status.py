"""Tracks the running subagents of a session from its events and formats one status line for each."""

import msgspec

from ostler.core.events import ChildEnded, ChildProgress, ChildStarted, Event, TurnEnded
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
