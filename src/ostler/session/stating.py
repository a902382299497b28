"""What a turn waits for, as a fold over its events; a backend only tells what it does while it thinks."""

from ostler.vocabulary.events import (
    Event,
    InfoChanged,
    PermissionAsked,
    PermissionDecided,
    StateChanged,
    TextDelta,
    ThoughtDelta,
    ToolCalled,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from ostler.vocabulary.sessions import TurnState

ENDED: dict[str, TurnState] = {"done": "done", "limit": "done", "failed": "error", "timeout": "error"}


class Stating:
    """Feed it every event before and after it is told; `now` is what is so then, `told` what was told last.

    A call by hand is none of the turn's: it neither waits for it nor runs in it.
    """

    def __init__(self) -> None:
        self.told: TurnState = "idle"
        self._in_turn = False
        self._acts_itself = False
        self._thinking: TurnState = "planning"
        self._ending: TurnState | None = None
        self._asks: set[str] = set()
        self._running: set[str] = set()
        self._by_hand: set[str] = set()

    @property
    def now(self) -> TurnState:
        if not self._in_turn:
            return "idle"
        if self._ending:
            return self._ending
        if self._asks:
            return "awaiting_permission"
        return "tool_running" if self._running else self._thinking

    def hears(self, event: StateChanged) -> bool:
        """Whether what a backend tells of itself makes a difference; then it counts as told."""
        if event.state in ("planning", "model_generating"):
            self._thinking = event.state
        changed, self.told = self.now != self.told, self.now
        return changed

    def before(self, event: Event) -> None:
        """What is so when a turn is about to be told as ended; one that was cancelled just stops."""
        if isinstance(event, TurnEnded):
            self._ending = ENDED.get(event.reason)

    def after(self, event: Event) -> None:
        match event:
            case TextDelta() | ThoughtDelta():  # the commonest first
                self._thinking = "model_generating"
            case ToolCalled(call):
                self._called(call.id, by_hand=call.origin == "person")
            case ToolStarted(call_id):
                self._run(call_id)
            case ToolFinished(result):
                self._running.discard(result.call_id)
            case PermissionAsked(ask_id, permission) if permission.call_id not in self._by_hand:
                self._asks.add(ask_id)
                self._thinking = "planning"  # a model that generated has said what it wants
            case PermissionDecided(ask_id):
                self._asks.discard(ask_id)
            case TurnStarted() | TurnEnded():
                self._begin_anew(in_turn=isinstance(event, TurnStarted))
            case InfoChanged(info):
                self._acts_itself = info.acts_itself
            case _:
                pass

    def _called(self, call_id: str, *, by_hand: bool) -> None:
        """Where the far side acts by itself, nothing else tells that a call runs."""
        if by_hand:
            self._by_hand.add(call_id)
        elif self._acts_itself:
            self._run(call_id)

    def _run(self, call_id: str) -> None:
        if call_id not in self._by_hand:
            self._running.add(call_id)
            self._thinking = "planning"

    def _begin_anew(self, *, in_turn: bool) -> None:
        self._in_turn, self._ending, self._thinking = in_turn, None, "planning"
        self._asks.clear()
        self._running.clear()
