"""A session's state as a fold over its kept events.

A revert takes back the conversation and the plan. It does not take back what was spent, what a person allowed, revoked
or chose, and what was run: a rule that was revoked stays so, and a call runs once.
"""

from collections.abc import Iterable

from ostler.journal.counting import Counting
from ostler.journal.todos_file import todos_of
from ostler.vocabulary.events import (
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
    Steered,
    TodosChanged,
    ToolCalled,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    UsageReported,
)
from ostler.vocabulary.permission import Rule
from ostler.vocabulary.seams import Past
from ostler.vocabulary.sessions import SessionInfo
from ostler.vocabulary.tools import Todo, ToolCall

# Of a turn that is over only these still tell something.
LASTING = frozenset(
    [
        "info_changed",
        "renamed",
        "option_changed",
        "usage_reported",
        "child_started",
        "child_ended",
        "rule_added",
        "rule_revoked",
        "steered",
        "delivered",
        "queued",
    ]
)


class SessionState:
    """What is so now: todos, open asks, usage, rules, children, words that wait, the calls of the turn that runs."""

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
        self.usage: list[UsageReported] = []
        self.undelivered: dict[str, None] = {}
        self.queued: tuple[str, ...] = ()
        for event in events:
            self.apply(event)

    def unanswered(self) -> list[ToolCall]:
        """Calls without a result, in the order they were made."""
        return [call for call_id, call in self.calls.items() if call_id not in self.results]

    @property
    def cost(self) -> float | None:
        """What the session cost so far, or None when a price is not known."""
        costs = [usage.cost for usage in self.usage]
        return None if None in costs else sum(cost for cost in costs if cost is not None)

    def apply(self, event: Event) -> None:
        """Take one event in."""
        match event:
            case InfoChanged(info):
                self.info = info
            case TurnStarted():
                self.turn = event
                self.turns += 1
            case TurnEnded():
                self.turn = None
                self._forget_calls()
            case Renamed(title):
                self.title = title or self.title
            case OptionChanged(option_id, value):
                self.options[option_id] = value
                self.info = self.info.having(option_id, value)
            case TodosChanged(items):
                self.todos = items
            case UsageReported():
                self.usage.append(event)
            case ChildStarted(child_id):
                self.children[child_id] = event
            case ChildEnded(child_id):
                self.children.pop(child_id, None)
            case Queued() | Steered() | Delivered():
                self._apply_words(event)
            case _:
                self._apply_call(event)

    def _apply_words(self, event: Queued | Steered | Delivered) -> None:
        match event:
            case Queued(texts):
                self.queued = texts
            case Steered(prompt):
                self.undelivered[prompt.id] = None
            case Delivered(prompt_id):
                self.undelivered.pop(prompt_id, None)

    def _forget_calls(self) -> None:
        """Every call of a turn has its result when the turn ends; the journal knows them by id."""
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
                self.rules = [kept for kept in self.rules if kept != rule]
            case _:
                pass


def state_of(past: Past) -> SessionState:
    """The state after a journal's records; of turns that are over only what outlives them is looked at."""
    state = SessionState()
    over = next((at for at in reversed(range(len(past))) if past.kind(at) == "turn_ended"), -1)
    state.turns = sum(1 for index in past.of(("turn_started",)) if index < over)
    for index in past.of(LASTING):
        if index < over:
            state.apply(past[index].event)
    for index in range(max(over, 0), len(past)):
        state.apply(past[index].event)
    state.todos = todos_of(Counting(past))
    return state
