"""What the subagents of a session do right now: a fold over its events for whoever tells it."""

import msgspec

from ostler.text.sanitise import sanitise
from ostler.vocabulary.events import ChildEnded, ChildProgress, ChildStarted, Event, TurnEnded


class _Child(msgspec.Struct):
    """One that is at work."""

    name: str
    now: ChildProgress | None = None


class Children:
    """Hears every event; those that did something last are told last."""

    def __init__(self) -> None:
        self._at_work: dict[str, _Child] = {}

    def hear(self, event: Event) -> None:
        match event:
            case ChildStarted(child_id, _, agent, title):
                self._at_work[child_id] = _Child(f"{agent} {title}".rstrip())
            case ChildProgress(child_id) if child := self._at_work.pop(child_id, None):
                child.now = event
                self._at_work[child_id] = child
            case ChildEnded(child_id):
                self._at_work.pop(child_id, None)
            case TurnEnded():
                self._at_work.clear()
            case _:
                pass

    def lines(self) -> list[str]:
        """One for each that is at work: what it is for, its state, its last call, and what it used."""
        return [sanitise(" · ".join(_words(child))).replace("\n", " ") for child in self._at_work.values()]


def _words(child: _Child) -> list[str]:
    now = child.now
    if now is None:
        return [child.name, "begins"]
    doing = f"{now.state.replace('_', ' ')}{f' ({now.last})' if now.last else ''}"
    return [child.name, doing, f"{now.tokens} tokens", *([f"${now.cost:.4f}"] if now.cost else [])]
