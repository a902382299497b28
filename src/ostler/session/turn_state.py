"""What a turn waits for, as a fold over its events; a backend only tells what it does while it thinks."""

from ostler.core.events import (
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
from ostler.core.sessions import TurnState

STATE_BY_END_REASON: dict[str, TurnState] = {"done": "done", "limit": "done", "failed": "error", "timeout": "error"}


class TurnStateTracker:
    """Feed it every event before and after it is told; `now` is what is so then, `told` what was told last.

    A call by hand is none of the turn's: it neither waits for it nor runs in it.
    """

    def __init__(self) -> None:
        self.reported: TurnState = "idle"
        self._in_turn = False
        self._runs_own_tools = False
        self._model_state: TurnState = "planning"
        self._end_state: TurnState | None = None
        self._asks: set[str] = set()
        self._running: set[str] = set()
        self._manual_calls: set[str] = set()

    @property
    def current(self) -> TurnState:
        if not self._in_turn:
            return "idle"
        if self._end_state:
            return self._end_state
        if self._asks:
            return "awaiting_permission"
        return "tool_running" if self._running else self._model_state

    def accept_backend_state(self, event: StateChanged) -> bool:
        """Whether what a backend tells of itself makes a difference; then it counts as told."""
        if event.state in ("planning", "model_generating"):
            self._model_state = event.state
        changed, self.reported = self.current != self.reported, self.current
        return changed

    def before_publish(self, event: Event) -> None:
        """What is so when a turn is about to be told as ended; one that was cancelled just stops."""
        if isinstance(event, TurnEnded):
            self._end_state = STATE_BY_END_REASON.get(event.reason)

    def after_publish(self, event: Event) -> None:
        match event:
            case TextDelta() | ThoughtDelta():  # the commonest first
                self._model_state = "model_generating"
            case ToolCalled(call):
                self._on_call(call.id, is_manual=call.origin == "person")
            case ToolStarted(call_id):
                self._on_running(call_id)
            case ToolFinished(result):
                self._running.discard(result.call_id)
            case PermissionAsked(ask_id, permission) if permission.call_id not in self._manual_calls:
                self._asks.add(ask_id)
                self._model_state = "planning"  # a model that generated has said what it wants
            case PermissionDecided(ask_id):
                self._asks.discard(ask_id)
            case TurnStarted() | TurnEnded():
                self._reset(in_turn=isinstance(event, TurnStarted))
            case InfoChanged(info):
                self._runs_own_tools = info.runs_own_tools
            case _:
                pass

    def _on_call(self, call_id: str, *, is_manual: bool) -> None:
        """Where the far side acts by itself, nothing else tells that a call runs."""
        if is_manual:
            self._manual_calls.add(call_id)
        elif self._runs_own_tools:
            self._on_running(call_id)

    def _on_running(self, call_id: str) -> None:
        if call_id not in self._manual_calls:
            self._running.add(call_id)
            self._model_state = "planning"

    def _reset(self, *, in_turn: bool) -> None:
        self._in_turn, self._end_state, self._model_state = in_turn, None, "planning"
        self._asks.clear()
        self._running.clear()
