"""Derives the state of the running turn (planning, awaiting permission, tool running, …) from its events."""

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
    """Tracks the turn state from every event, before and after it is published.

    `current` is the state now, `reported` the last published one. Calls made by the user are not part of the turn and
    do not change its state.
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
        """Record a state reported by the backend. Return True if the turn state changed and must be published."""
        if event.state in ("planning", "model_generating"):
            self._model_state = event.state
        changed, self.reported = self.current != self.reported, self.current
        return changed

    def before_publish(self, event: Event) -> None:
        """Set the end state (`done` or `error`) before `TurnEnded` is published; a cancelled turn has none."""
        if isinstance(event, TurnEnded):
            self._end_state = STATE_BY_END_REASON.get(event.reason)

    def after_publish(self, event: Event) -> None:
        match event:
            case TextDelta() | ThoughtDelta():  # most frequent, so checked first
                self._model_state = "model_generating"
            case ToolCalled(call):
                self._on_call(call.id, is_manual=call.origin == "person")
            case ToolStarted(call_id):
                self._on_running(call_id)
            case ToolFinished(result):
                self._running.discard(result.call_id)
            case PermissionAsked(ask_id, permission) if permission.call_id not in self._manual_calls:
                self._asks.add(ask_id)
                self._model_state = "planning"  # the model has finished generating
            case PermissionDecided(ask_id):
                self._asks.discard(ask_id)
            case TurnStarted() | TurnEnded():
                self._reset(in_turn=isinstance(event, TurnStarted))
            case InfoChanged(info):
                self._runs_own_tools = info.runs_own_tools
            case _:
                pass

    def resume_turn(self) -> None:
        """Enter the turn that an earlier process started."""
        self._reset(in_turn=True)

    def _on_call(self, call_id: str, *, is_manual: bool) -> None:
        """Handle a new call. A remote side that runs its own tools sends no `ToolStarted`, so the call is running."""
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
