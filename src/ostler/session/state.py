"""Session state, folded from its persisted events.

A revert undoes the conversation and the todo list, but not costs, permission rules, options or executed calls: a
revoked rule stays revoked, and a call runs only once.
"""

from collections.abc import Iterable, Sequence

from ostler.core.events import (
    ChildEnded,
    ChildStarted,
    Delivered,
    Event,
    InfoChanged,
    MessageDone,
    OptionChanged,
    PermissionAsked,
    PermissionDecided,
    QuestionAnswered,
    QuestionAsked,
    Queued,
    Renamed,
    RuleAdded,
    RuleRevoked,
    ServerStateChanged,
    SessionOpened,
    Steered,
    TodosChanged,
    ToolCalled,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    UsageReported,
)
from ostler.core.permission import Rule
from ostler.core.session_view import Records
from ostler.core.sessions import SessionInfo
from ostler.core.tools import CallOrigin, Todo, ToolCall
from ostler.journal.active_records import ActiveRecords
from ostler.journal.partial_replies import PartialReplies
from ostler.journal.todos_file import current_todos

# The events of a finished turn that still matter for the state.
TYPES_THAT_OUTLIVE_TURN = frozenset(
    [
        "session_opened",
        "info_changed",
        "renamed",
        "option_changed",
        "usage_reported",
        "child_started",
        "child_ended",
        "server_state_changed",
        "rule_added",
        "rule_revoked",
        "steered",
        "delivered",
        "queued",
    ]
)


class SessionState:
    """The current state: todos, open requests, usage, rules, children, pending prompts, calls of the running turn."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.title = ""
        self.info = SessionInfo(backend="")
        self.options: dict[str, str] = {}
        self.turn: TurnStarted | None = None
        self.turns = 0
        self.todos: tuple[Todo, ...] = ()
        self.asks: dict[str, PermissionAsked] = {}
        self.questions: dict[str, QuestionAsked] = {}
        self.rules: list[Rule] = []
        self.calls: dict[str, ToolCall] = {}
        self.started: dict[str, bool] = {}
        self.results: set[str] = set()
        self.children: dict[str, ChildStarted] = {}
        self.servers: dict[str, ServerStateChanged] = {}
        self.usage: list[UsageReported] = []
        self.undelivered: dict[str, None] = {}
        self.queued: tuple[str, ...] = ()
        self.partial_replies = PartialReplies()
        for event in events:
            self.apply(event)

    def rules_of_call(self, call_id: str) -> tuple[CallOrigin, Sequence[Rule], Sequence[Sequence[Rule]]]:
        """Return the origin of a call, the rules of the session, and the rules that restrict the call."""
        call = self.calls.get(call_id)
        return (call.origin if call else "model", self.rules, call.rule_layers() if call else ())

    def calls_without_result(self) -> list[ToolCall]:
        """Return the calls without a result, in the order they were made."""
        return [call for call_id, call in self.calls.items() if call_id not in self.results]

    @property
    def cost(self) -> float | None:
        """The cost of the session so far in US dollars, or None if a price is unknown."""
        costs = [usage.cost for usage in self.usage]
        return None if None in costs else sum(cost for cost in costs if cost is not None)

    def apply(self, event: Event) -> None:
        """Update the state with one event."""
        self.partial_replies.apply(event)
        match event:
            case InfoChanged(info):
                self.info = info
            case TurnStarted(_, prompt):
                self.turn = event
                self.turns += 1
                self.undelivered.pop(prompt.id, None)
            case TurnEnded():
                self.turn = None
                self._forget_calls()
            case Renamed(title):
                self.title = title or self.title
            case OptionChanged(option_id, value):
                self.options[option_id] = value
                self.info = self.info.with_option(option_id, value)
            case TodosChanged(items):
                self.todos = items
            case UsageReported():
                self.usage.append(event)
            case ChildStarted(child_id):
                self.children[child_id] = event
            case ChildEnded(child_id):
                self.children.pop(child_id, None)
            case Queued() | Steered() | Delivered():
                self._apply_prompt(event)
            case SessionOpened() | ServerStateChanged():
                self._apply_server(event)
            case _:
                self._apply_call(event)

    def _apply_prompt(self, event: Queued | Steered | Delivered) -> None:
        match event:
            case Queued(texts):
                self.queued = texts
            case Steered(prompt):
                self.undelivered[prompt.id] = None
            case Delivered(prompt_id):
                self.undelivered.pop(prompt_id, None)

    def _apply_server(self, event: SessionOpened | ServerStateChanged) -> None:
        if isinstance(event, SessionOpened):  # the servers of the earlier process have ended
            self.servers.clear()
        else:
            self.servers[event.name] = event

    def _forget_calls(self) -> None:
        """Drop the calls of a finished turn: all have results, which the journal finds by id."""
        self.calls.clear()
        self.started.clear()
        self.results.clear()

    def _apply_call(self, event: Event) -> None:
        match event:
            case MessageDone(message):
                self.calls.update({call.id: call for call in message.calls})
            case ToolCalled(call):
                self.calls[call.id] = call
            case ToolStarted(call_id, _, effects):
                self.started[call_id] = effects
            case ToolFinished(result):
                self.results.add(result.call_id)
            case PermissionAsked(ask_id):
                self.asks[ask_id] = event
            case PermissionDecided(ask_id):
                self.asks.pop(ask_id, None)
            case QuestionAsked(question):
                self.questions[question.id] = event
            case QuestionAnswered(question_id):
                self.questions.pop(question_id, None)
            case RuleAdded(rule):
                self.rules.append(rule)
            case RuleRevoked(rule):
                self.rules = [other for other in self.rules if other != rule]
            case _:
                pass


def state_from_records(records: Records) -> SessionState:
    """Build the state from a journal's records, reading only the relevant events of finished turns."""
    state = SessionState()
    last_end = next((i for i in reversed(range(len(records))) if records.type_at(i) == "turn_ended"), -1)
    state.turns = sum(1 for index in records.indexes_of(("turn_started",)) if index < last_end)
    for index in records.indexes_of(TYPES_THAT_OUTLIVE_TURN):
        if index < last_end:
            state.apply(records[index].event)
    for index in range(max(last_end, 0), len(records)):
        state.apply(records[index].event)
    state.todos = current_todos(ActiveRecords(records))
    return state
