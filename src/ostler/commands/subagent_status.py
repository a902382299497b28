"""What the subagents of a session do right now: a fold over its events for whoever tells it."""

import msgspec

from ostler.core.events import ChildEnded, ChildProgress, ChildStarted, Event, TurnEnded
from ostler.text.sanitise import sanitise


class _Subagent(msgspec.Struct):
    """One that is at work."""

    name: str
    progress: ChildProgress | None = None


class SubagentTracker:
    """Hears every event; those that did something last are told last."""

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
        """One for each that is at work: what it is for, its state, its last call, and what it used."""
        return [sanitise(" · ".join(_status_parts(child))).replace("\n", " ") for child in self._running.values()]


def _status_parts(child: _Subagent) -> list[str]:
    now = child.progress
    if now is None:
        return [child.name, "begins"]
    doing = f"{now.state.replace('_', ' ')}{f' ({now.last})' if now.last else ''}"
    return [child.name, doing, f"{now.tokens} tokens", *([f"${now.cost:.4f}"] if now.cost else [])]
