"""All session events as one closed union of plain values.

Persisted events are the session's records, and the session state is folded from them. Transient events are only
streamed. An unknown event type, for example from a newer version, decodes to `UnknownEvent`.
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
    """An event that is saved in the journal."""

    persisted: ClassVar[bool] = True


class TransientEvent(msgspec.Struct, frozen=True, tag=_to_snake_case, omit_defaults=True):
    """An event that is only streamed to current subscribers and never saved."""

    persisted: ClassVar[bool] = False


class SessionOpened(PersistedEvent, frozen=True):
    """The session was created or resumed; the first event each time."""

    session_id: str
    cwd: str
    backend: str
    version: str
    parent_id: str = ""


class InfoChanged(PersistedEvent, frozen=True):
    """The complete session info, after opening and whenever the backend changes its options, commands or title."""

    info: SessionInfo


class PromptPart(msgspec.Struct, frozen=True, omit_defaults=True):
    """A part of the system prompt: its name, its source and its size in bytes."""

    name: str
    origin: str
    size: int


class PrefixBuilt(PersistedEvent, frozen=True):
    """The system prompt and tools that start every request, saved so that a resumed session sends the same bytes."""

    system: str
    tools: tuple[dict[str, Any], ...]
    parts: tuple[PromptPart, ...] = ()


class TurnStarted(PersistedEvent, frozen=True):
    """A turn started. The next turn can start only after its `TurnEnded`."""

    turn_id: str
    prompt: Prompt


class StateChanged(TransientEvent, frozen=True):
    """The state of the turn changed, or became `idle` after it.

    The session emits it. A backend can only report `planning` and `model_generating`.
    """

    state: TurnState


class TextDelta(TransientEvent, frozen=True):
    """The next part of the answer; replaced by the `MessageDone` with the same id."""

    message_id: str
    text: str


class ThoughtDelta(TransientEvent, frozen=True):
    """The next part of the reasoning; replaced by the `MessageDone` with the same id."""

    message_id: str
    text: str


class MessageSnapshot(TransientEvent, frozen=True, tag="message_so_far"):
    """All text of an unfinished message so far, for late subscribers; replaces the deltas received before."""

    message_id: str
    text: str = ""
    thought: str = ""


class PartialReply(PersistedEvent, frozen=True):
    """The text of an unfinished message since the last such event; replaced by the `MessageDone` with the same id.

    It is saved so that the text survives a crash. `restarts`: the message started again, earlier text is void."""

    message_id: str
    text: str = ""
    thought: str = ""
    restarts: bool = False


class MessageDone(PersistedEvent, frozen=True):
    """A message is complete or was truncated; no more deltas follow for it."""

    message: Message


class ToolCalled(PersistedEvent, frozen=True):
    """A tool call was made. Sent again with the same call id when more is known, always before its `ToolStarted`.

    `title` is the caller's name for the call, if it differs from the tool's name.
    """

    call: ToolCall
    title: str = ""
    kind: ToolKind = "other"
    paths: tuple[str, ...] = ()


class ToolStarted(PersistedEvent, frozen=True):
    """A call was allowed and is about to run; on disk before the call can have side effects.

    Sent again for a command that failed with the workspace read-only and is about to run with a writable one.
    """

    call_id: str
    tool: str
    effects: bool = True


class ToolProgress(TransientEvent, frozen=True):
    """What to show for a running call; replaces the previous progress."""

    call_id: str
    display: Display


class ToolFinished(PersistedEvent, frozen=True):
    """A call has its result: exactly one per call, also if it was denied, cancelled or never ran."""

    result: ToolResult


class PermissionAsked(PersistedEvent, frozen=True):
    """An approval request; the call waits for the `PermissionDecided` with the same id."""

    ask_id: str
    permission: Permission
    once_only: bool = False


class PermissionDecided(PersistedEvent, frozen=True):
    """An approval request was answered or withdrawn, or the policy denied the call without asking."""

    ask_id: str
    permission: Permission
    decision: Decision


class QuestionAsked(PersistedEvent, frozen=True):
    """The backend or a tool asked the user a question."""

    question: Question


class QuestionAnswered(PersistedEvent, frozen=True):
    """A question was answered, declined or withdrawn."""

    question_id: str
    reply: QuestionReply


class RuleAdded(PersistedEvent, frozen=True):
    """The user allowed something for the whole session or project."""

    rule: Rule
    scope: Literal["session", "project"] = msgspec.field(name="lasts", default="session")


class RuleRevoked(PersistedEvent, frozen=True):
    """The user revoked a standing rule."""

    rule: Rule


class TodosChanged(PersistedEvent, frozen=True):
    """The complete new todo list, from the todo tools or a remote backend; `starter` if Ostler made it itself."""

    items: tuple[Todo, ...]
    starter: bool = False


class UsageReported(PersistedEvent, frozen=True):
    """The tokens and the cost of a model call, or a new context size (without tokens) after a compaction or its undo.

    `cost` is in US dollars, None if unknown. Calls of the child session `child_id` count towards this turn's limits."""

    model: str
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    cost: float | None = None
    context_used: int = 0
    context_limit: int = 0
    child_id: str = ""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__[1:-1]:
            if not 0 <= (getattr(self, name) or 0) <= 10**12:  # not plausible; sums must fit into 64 bits
                msgspec.structs.force_setattr(self, name, 0)


class OptionChanged(PersistedEvent, frozen=True):
    """An option was set, during or between turns: model, agent, mode, thinking or security profile."""

    id: str
    value: str


class Steered(PersistedEvent, frozen=True):
    """A prompt was sent to the running turn; it is pending, even after a crash, until `Delivered` or its own turn."""

    prompt: Prompt


class Delivered(PersistedEvent, frozen=True):
    """The steering prompt with this id was given to the model at this point."""

    prompt_id: str


class Queued(PersistedEvent, frozen=True):
    """The complete list of prompts to send after the running turn, as typed; emitted whenever it changes.

    A server also stores the complete prompts, with the ids that its clients gave them.
    """

    texts: tuple[str, ...] = ()
    prompts: tuple[Prompt, ...] = ()


class Notice(PersistedEvent, frozen=True):
    """A message to the user that is neither a result nor a failure of the turn; with `quotes` it has a prompt."""

    level: Literal["info", "warning", "error"]
    text: str
    quotes: bool = False


class Waiting(TransientEvent, frozen=True):
    """The model or remote agent has sent nothing for `seconds`; the request is still open and is not retried."""

    seconds: float
    reason: str


class Retrying(TransientEvent, frozen=True):
    """A request failed; the backend retries it automatically after `wait_seconds`."""

    attempt: int
    wait_seconds: float
    reason: str


class Reminded(PersistedEvent, frozen=True):
    """A generated message for the model, such as a reminder; not shown to the user."""

    text: str


class Pruned(PersistedEvent, frozen=True):
    """From here on, tool results before `upto_seq` are sent to the model truncated to `chars` characters."""

    upto_seq: int
    chars: int = 0


class Compacted(PersistedEvent, frozen=True):
    """From here on, everything before `upto_seq` is sent to the model as this summary.

    An empty summary undoes the last compaction: the model gets the original messages again.
    """

    summary: str
    upto_seq: int


class Reverted(PersistedEvent, frozen=True):
    """All events after `to_seq` are reverted; a later revert can restore them."""

    to_seq: int


class Renamed(PersistedEvent, frozen=True):
    """The session got a title, a summary or both; an empty value leaves the current one unchanged."""

    title: str
    summary: str = ""


class ChildStarted(PersistedEvent, frozen=True):
    """A child session started on a task; its events are in its own journal."""

    child_id: str
    call_id: str
    agent: str
    title: str


class ChildProgress(TransientEvent, frozen=True):
    """The current activity of a child session; replaces the previous progress."""

    child_id: str
    state: TurnState
    last: str = ""
    tokens: int = 0
    cost: float | None = None


class ChildEnded(PersistedEvent, frozen=True):
    """A child session ended."""

    child_id: str
    reason: TurnEndReason


class ToolsChanged(TransientEvent, frozen=True):
    """The tools that can be called changed by themselves; `names` are all that can be called now.

    Setting an option such as the agent can also change the tools, without this event.
    """

    names: tuple[str, ...]


class ServerStateChanged(PersistedEvent, frozen=True):
    """The state of an external server, such as an MCP server, changed. The next `SessionOpened` ends all states."""

    name: str
    state: Literal["starting", "ready", "failed", "stopped", "disabled"]
    detail: str = ""
    tools: int = 0

    @property
    def failure(self) -> str:
        """The message for the user if the server failed, or an empty string."""
        return f"server {self.name} failed: {self.detail}".removesuffix(": ") if self.state == "failed" else ""


class RemoteCursor(PersistedEvent, frozen=True, tag="far_mark"):
    """How far a remote backend has read the remote log. A copy of `session` may copy the remote session.

    `described` is a signature of what the remote side has. `message` and `turn` are its ids of the local turn."""

    epoch: str
    seq: int
    described: str = ""
    session: str = ""
    message: str = ""
    turn: str = ""


class TurnEnded(PersistedEvent, frozen=True):
    """A turn ended. `limit` names the limit that was reached; `fault` says why it failed."""

    turn_id: str
    reason: TurnEndReason
    fault: Fault | None = None
    limit: str = ""


class UnknownEvent(msgspec.Struct, frozen=True):
    """An event of a type that this version does not know, with its data unchanged."""

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
    | PartialReply
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
    | ToolsChanged
    | ServerStateChanged
    | RemoteCursor
    | TurnEnded
)
Event = KnownEvent | UnknownEvent

EVENT_TYPES: tuple[type[KnownEvent], ...] = get_args(KnownEvent)


class Envelope(msgspec.Struct, frozen=True):
    """An event with its sequence number and time.

    `seq` numbers the persisted events and is never reused; a transient event has that of the last persisted one."""

    seq: int
    time: float
    event: Event
