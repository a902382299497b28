"""Everything that can happen in a session, as one closed union of plain values.

Each class says whether it is kept: the kept ones are the session's records, and state is a fold over them.
An unknown type from a newer peer decodes to `Unknown`, never to an error.
"""

from typing import Any, ClassVar, Literal, get_args

import msgspec

from ostler.core.display import Display
from ostler.core.errors import Fault
from ostler.core.message import Message
from ostler.core.permission import Decision, Permission, Question, QuestionReply, Rule
from ostler.core.prompt import Prompt
from ostler.core.sessions import SessionInfo, TurnEndReason, TurnState
from ostler.core.tools import Todo, ToolCall, ToolKind, ToolResult


def _to_snake_case(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")


class PersistedEvent(msgspec.Struct, frozen=True, tag=_to_snake_case, omit_defaults=True):
    """An event that the journal keeps."""

    persisted: ClassVar[bool] = True


class TransientEvent(msgspec.Struct, frozen=True, tag=_to_snake_case, omit_defaults=True):
    """An event that only those who look now will see; what it told comes again, whole, in a kept one."""

    persisted: ClassVar[bool] = False


class SessionOpened(PersistedEvent, frozen=True):
    """First of all, and again at each resume: where, with what, below which parent."""

    session_id: str
    cwd: str
    backend: str
    version: str
    parent_id: str = ""


class InfoChanged(PersistedEvent, frozen=True):
    """After opening, and whenever the backend's options, commands or title change: the whole info anew."""

    info: SessionInfo


class PromptPart(msgspec.Struct, frozen=True, omit_defaults=True):
    """A piece of the system prompt: its name, where it comes from, and its bytes."""

    name: str
    origin: str
    size: int


class PrefixBuilt(PersistedEvent, frozen=True):
    """Before a session's first request: what every request begins with; a resumed session sends the same bytes."""

    system: str
    tools: tuple[dict[str, Any], ...]
    parts: tuple[PromptPart, ...] = ()


class TurnStarted(PersistedEvent, frozen=True):
    """A turn begins. Until its `TurnEnded` no other turn begins."""

    turn_id: str
    prompt: Prompt


class StateChanged(TransientEvent, frozen=True):
    """Within a turn, whenever what it waits for changes, and `idle` after it. The session tells it; of a backend only
    `planning` and `model_generating` are heard."""

    state: TurnState


class TextDelta(TransientEvent, frozen=True):
    """More of the answer; `MessageDone` with the same id replaces all of it."""

    message_id: str
    text: str


class ThoughtDelta(TransientEvent, frozen=True):
    """More of the reasoning; replaced as `TextDelta` is."""

    message_id: str
    text: str


class MessageSnapshot(TransientEvent, frozen=True, tag="message_so_far"):
    """All that was said of a message until now, for whoever did not hear it: it replaces the deltas so far."""

    message_id: str
    text: str = ""
    thought: str = ""


class MessageDone(PersistedEvent, frozen=True):
    """A message is whole, or was cut; ends its deltas."""

    message: Message


class ToolCalled(PersistedEvent, frozen=True):
    """A call is known; comes again with the same call id when more of it is. Always before its `ToolStarted`.

    `title` is what whoever made it calls it, where that is not the tool's own name.
    """

    call: ToolCall
    title: str = ""
    kind: ToolKind = "other"
    paths: tuple[str, ...] = ()


class ToolStarted(PersistedEvent, frozen=True):
    """A call was allowed and begins to run: the intent, on disk before any effect."""

    call_id: str
    tool: str
    effects: bool = True


class ToolProgress(TransientEvent, frozen=True):
    """While a call runs: what there is to see of it so far, replacing the progress before."""

    call_id: str
    display: Display


class ToolFinished(PersistedEvent, frozen=True):
    """A call has its result, also when it was denied, cancelled or never ran. Exactly one for each call."""

    result: ToolResult


class PermissionAsked(PersistedEvent, frozen=True):
    """The policy said ask; the call waits until the `PermissionDecided` with the same id."""

    ask_id: str
    permission: Permission
    once_only: bool = False


class PermissionDecided(PersistedEvent, frozen=True):
    """An ask was answered, withdrawn, or the policy refused by itself."""

    ask_id: str
    permission: Permission
    decision: Decision


class QuestionAsked(PersistedEvent, frozen=True):
    """The backend wants to know something of the person."""

    question: Question


class QuestionAnswered(PersistedEvent, frozen=True):
    """A question was answered, declined or withdrawn."""

    question_id: str
    reply: QuestionReply


class RuleAdded(PersistedEvent, frozen=True):
    """A person answered for the whole session or project."""

    rule: Rule
    scope: Literal["session", "project"] = msgspec.field(name="lasts", default="session")


class RuleRevoked(PersistedEvent, frozen=True):
    """A person took a standing rule back."""

    rule: Rule


class TodosChanged(PersistedEvent, frozen=True):
    """The plan anew, whole: from the todo tools or from a far side that plans."""

    items: tuple[Todo, ...]


class UsageReported(PersistedEvent, frozen=True):
    """After each model call, and without tokens when a summary, or taking one back, changed how full the context is.

    `cost` is in US dollars and None where the price is not known.

    With a `child_id` it is a call of that child, told here because it counts for this turn's limits; the child's own
    journal has it too.
    """

    model: str
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    cost: float | None = None
    context_used: int = 0
    context_limit: int = 0
    child_id: str = ""


class OptionChanged(PersistedEvent, frozen=True):
    """Between turns or within one: model, agent, mode, thinking, security profile."""

    id: str
    value: str


class Steered(PersistedEvent, frozen=True):
    """Words arrived for the running turn; they wait, over a crash too, until their `Delivered`."""

    prompt: Prompt


class Delivered(PersistedEvent, frozen=True):
    """The steering prompt with this id was put before the model here, between two steps."""

    prompt_id: str


class Queued(PersistedEvent, frozen=True):
    """What waits to be sent after the turn that runs, as it was typed: all of it anew, whenever it changes."""

    texts: tuple[str, ...] = ()


class Notice(PersistedEvent, frozen=True):
    """Something a person should know that is no result and no failure of the turn."""

    level: Literal["info", "warning", "error"]
    text: str


class Waiting(TransientEvent, frozen=True):
    """Nothing has come from the far side for so many seconds; it is still waited for, and nothing is asked again."""

    seconds: float
    reason: str


class Retrying(TransientEvent, frozen=True):
    """The backend will try again by itself."""

    attempt: int
    wait_seconds: float
    reason: str


class Reminded(PersistedEvent, frozen=True):
    """The model is told something here that nobody typed and no person is shown: a reminder, or a nudge."""

    text: str


class Pruned(PersistedEvent, frozen=True):
    """Results of tools before `upto_seq` are told to the model cut down to `chars` characters from now on."""

    upto_seq: int
    chars: int = 0


class Compacted(PersistedEvent, frozen=True):
    """What came before `upto_seq` is told to the model as this summary from now on.

    One without a summary takes the last one that counts back: the model is told the conversation itself again.
    """

    summary: str
    upto_seq: int


class Reverted(PersistedEvent, frozen=True):
    """What came after `to_seq` no longer counts, until a later revert counts it again."""

    to_seq: int


class Renamed(PersistedEvent, frozen=True):
    """The session has a title, maybe a summary too; without a title or a summary, that one stays as it is."""

    title: str
    summary: str = ""


class ChildStarted(PersistedEvent, frozen=True):
    """A child session works on a part; its own events are in its own journal."""

    child_id: str
    call_id: str
    agent: str
    title: str


class ChildProgress(TransientEvent, frozen=True):
    """What a child does now, replacing the progress before."""

    child_id: str
    state: TurnState
    last: str = ""
    tokens: int = 0
    cost: float | None = None


class ChildEnded(PersistedEvent, frozen=True):
    """A child session is over."""

    child_id: str
    reason: TurnEndReason


class RemoteCursor(PersistedEvent, frozen=True, tag="far_mark"):
    """How far a remote backend has followed the far side's own log."""

    epoch: str
    seq: int


class TurnEnded(PersistedEvent, frozen=True):
    """Last of a turn. `limit` names which one was reached; `fault` says why it failed."""

    turn_id: str
    reason: TurnEndReason
    fault: Fault | None = None
    limit: str = ""


class UnknownEvent(msgspec.Struct, frozen=True):
    """A type this version does not know, kept word for word."""

    persisted: ClassVar[bool] = True
    type: str
    data: dict[str, Any]


KnownEvent = (
    SessionOpened
    | InfoChanged
    | PrefixBuilt
    | TurnStarted
    | StateChanged
    | TextDelta
    | ThoughtDelta
    | MessageSnapshot
    | MessageDone
    | ToolCalled
    | ToolStarted
    | ToolProgress
    | ToolFinished
    | PermissionAsked
    | PermissionDecided
    | QuestionAsked
    | QuestionAnswered
    | RuleAdded
    | RuleRevoked
    | TodosChanged
    | UsageReported
    | OptionChanged
    | Steered
    | Delivered
    | Queued
    | Notice
    | Waiting
    | Retrying
    | Reminded
    | Pruned
    | Compacted
    | Reverted
    | Renamed
    | ChildStarted
    | ChildProgress
    | ChildEnded
    | RemoteCursor
    | TurnEnded
)
Event = KnownEvent | UnknownEvent

EVENT_TYPES: tuple[type[KnownEvent], ...] = get_args(KnownEvent)


class Envelope(msgspec.Struct, frozen=True):
    """An event with its place: `seq` numbers the kept events, and a fleeting one has that of the kept one before it.

    So a number is never used again, not even after a crash; whoever was away asks for what came after the last he saw.
    """

    seq: int
    time: float
    event: Event
