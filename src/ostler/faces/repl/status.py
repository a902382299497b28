"""What stands below the prompt: who thinks, how full the context is, what it cost, what holds commands, and where."""

from collections.abc import Sequence

from ostler.commands.meter import Meter
from ostler.drawing.scroll import Scroll
from ostler.drawing.waiting import waiting_line
from ostler.text.sanitise import sanitise
from ostler.vocabulary.display import Note
from ostler.vocabulary.events import Event
from ostler.vocabulary.seams import Session


class Status:
    """Hears every event; told in lines."""

    def __init__(self, session: Session, meter: Meter) -> None:
        self._session = session
        self._meter = meter
        self._waiting = ""
        self.surroundings: Sequence[str] = ()

    def hear(self, event: Event) -> None:
        self._waiting = waiting_line(event)

    def passing(self, scroll: Scroll) -> str:
        """What is going on right now: the line being said, what subagents do, or what a command printed last."""
        if self._waiting:
            return self._waiting
        if scroll.partial:
            return scroll.partial
        if children := self._meter.children.lines():
            return " | ".join(children)
        running = scroll.calls.running
        notes = [part.text for part in running.display.blocks if isinstance(part, Note)] if running else []
        return sanitise(notes[-1][-2000:]).rstrip("\n").rpartition("\n")[2] if notes else ""

    def standing(self, *, busy: bool, asking: bool, queued: int) -> str:
        """What stays, in one line; what matters now comes first, where a narrow window cuts nothing off."""
        words = [
            *(["waiting for your answer" if asking else "working, Ctrl-C cancels"] if busy else []),
            *([f"{queued} queued"] if queued else []),
            *(word for word in (self._meter.option("agent"), self._meter.option("model")) if word),
            *([profile] if (profile := self._meter.option("profile")) not in ("", "balanced") else []),
            f"context {self._meter.context}",
            *self._price(),
            *self.surroundings,
        ]
        return sanitise(" · ".join(words)).replace("\n", " ")

    def _price(self) -> list[str]:
        cost = self._session.state.cost
        return [f"${cost:.2f}"] if cost else []
