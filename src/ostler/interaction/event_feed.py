"""One short line for each event that a user may want to follow: the live feed of a session."""

from collections import deque
from time import localtime, strftime

from ostler.core.events import (
    ChildEnded,
    ChildStarted,
    Compacted,
    Envelope,
    Event,
    MessageDone,
    Notice,
    OptionChanged,
    PermissionAsked,
    PermissionDecided,
    QuestionAsked,
    Retrying,
    Reverted,
    ServerStateChanged,
    SessionOpened,
    StateChanged,
    Steered,
    TodosChanged,
    ToolCalled,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    UsageReported,
    Waiting,
)
from ostler.text.sanitise import escape_to_one_line

MAX_LINES = 500
MAX_LENGTH = 300
STATES = {"planning": "planning", "model_generating": "the model is answering"}  # others have lines of their own
ANSWERS = {"allow": "allowed", "deny": "denied", "cancel": "cancelled"}


class EventFeed:
    """The newest lines of the feed, each with the time of its event."""

    def __init__(self) -> None:
        self.lines: deque[tuple[str, str]] = deque(maxlen=MAX_LINES)
        self._tools: dict[str, str] = {}

    def on_event(self, envelope: Envelope) -> bool:
        """Add the line of an event. Return False if it has none."""
        event = envelope.event
        if isinstance(event, ToolCalled):
            self._tools[event.call.id] = event.call.tool
        text = _turn_line(event) or self._call_line(event) or _state_line(event) or _helper_line(event)
        if not text:
            return False
        line = escape_to_one_line(text[:MAX_LENGTH])
        self.lines.append((strftime("%H:%M:%S", localtime(envelope.time)), line))
        return True

    @property
    def last(self) -> str:
        return self.lines[-1][1] if self.lines else ""

    def _call_line(self, event: Event) -> str:
        match event:
            case ToolStarted(call_id, tool):
                self._tools[call_id] = tool
                return f"{tool} started"
            case ToolFinished(result):
                tool = self._tools.pop(result.call_id, "call")
                summary = result.for_human.summary.partition("\n")[0]
                return f"{tool} {result.status}{f': {summary}' if summary not in ('', result.status) else ''}"
            case PermissionAsked(_, permission):
                return f"approval needed: {permission.title}"
            case PermissionDecided(_, permission, decision):
                by = f" by {decision.who or 'you'}" if decision.by == "person" else ""
                return f"{ANSWERS[decision.answer]}{by}: {permission.title}"
            case QuestionAsked(question):
                return f"question: {question.text}"
            case _:
                return ""


def _turn_line(event: Event) -> str:
    match event:
        case TurnStarted(_, prompt):
            return f"prompt: {prompt.text}"
        case TurnEnded(_, reason, fault):
            return f"turn {reason}{f': {fault}' if fault else ''}"
        case MessageDone(message):
            return "reply received" if message.text else ""
        case UsageReported():
            return f"{event.tokens_in} tokens in, {event.tokens_out} out" if event.tokens_out else ""
        case Steered(prompt):
            return f"steered: {prompt.text}"
        case Waiting(_, reason):
            return f"waiting: {reason}"
        case Retrying(attempt, seconds, reason):
            return f"{reason}; retry {attempt} in {seconds:.0f} s"
        case _:
            return ""


def _state_line(event: Event) -> str:
    match event:
        case StateChanged(state):
            return STATES.get(state, "")
        case OptionChanged(option_id, value):
            return f"{option_id} is now {value}"
        case SessionOpened():
            return "session opened"
        case TodosChanged(items):
            done = sum(item.status == "completed" for item in items)
            return f"tasks: {done} of {len(items)} done"
        case Compacted() | Reverted():
            return "history compacted" if isinstance(event, Compacted) else "prompts undone or redone"
        case Notice(level, text):
            return f"{level}: {text}"
        case _:
            return ""


def _helper_line(event: Event) -> str:
    match event:
        case ChildStarted(_, _, agent, title):
            return f"subagent {agent} started: {title}"
        case ChildEnded(_, reason):
            return f"subagent {reason}"
        case ServerStateChanged(name, state):
            return f"server {name} {state}"
        case _:
            return ""
