"""Values that messages of the server protocol share: manifest, host, workspace, limits, snapshot."""

from typing import Any, Literal, TypeVar, get_args

import msgspec

from ostler.core.tools import ResultStatus, Todo, ToolKind, ToolPlace, ToolReach

PROTOCOL_VERSION = 1
PROJECT_CHECKS = "ostler.project_checks"  # a call of the server itself, which models do not see

Feature = Literal["events", "queue", "approvals", "host", "manifest", "tool.cancel", "tool.progress", "changes"]
FEATURES: tuple[Feature, ...] = get_args(Feature)
ErrorCode = Literal[
    "bad_message",
    "too_large",
    "hello_expected",
    "wrong_session",
    "bad_manifest",
    "host_taken",
    "not_host",
    "unknown_call",
    "unknown_message",
    "unknown_ask",
    "rate_limited",
    "queue_full",
    "empty_message",
    "bad_change",
    "model_unavailable",
    "turn_failed",
    "draining",
    "deleted",
    "not_found",
    "unauthenticated",
    "forbidden",
    "busy",
    "internal",
]


class CloseCode:
    """The codes with which the server closes a WebSocket. A client reconnects after those below 4400 and after 4408."""

    RESTART = 1012  # the server is shutting down
    TOO_SLOW = 1013  # the client did not read its messages
    TOO_LARGE = 1009  # a message over the size limit
    BAD_MESSAGE = 4400  # not a message of the protocol
    UNAUTHENTICATED = 4401  # the token was revoked or expired
    DELETED = 4404  # the session was deleted
    NO_HELLO = 4408  # no `hello` within the time limit
    REPLACED = 4409  # another connection is the session's tool host
    BAD_MANIFEST = 4422  # the manifest was refused
    RATE_LIMITED = 4429  # far too many messages


class Frame(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A message, or a value in one. Names are in camel case on the wire; unknown fields are ignored."""


T = TypeVar("T")


def always_sent(value: T) -> T:
    """Return a default that is not left out of a message: what is left out counts as empty."""
    default: T = msgspec.field(default_factory=lambda: value)
    return default


class ManifestTool(Frame, frozen=True):
    """A tool of the client. The fields after `input_schema` are additions that a bare tool host leaves out.

    A tool with `runs_in` set to `session` runs on the server if the server has one of that name.
    """

    name: str
    description: str = ""
    input_schema: dict[str, Any] = {}
    kind: ToolKind = "other"
    effects: bool = True
    reach: ToolReach = "anything"
    runs_in: ToolPlace = "workspace"
    namespace: str = ""


class ToolManifest(Frame, frozen=True):
    """The tools that a client runs."""

    tools: tuple[ManifestTool, ...]


class HostInfo(Frame, frozen=True):
    """The machine that runs the tools. `id` stays the same when the client reconnects; `name` is for people."""

    id: str = ""
    name: str = ""


class WorkspaceSection(Frame, frozen=True):
    """A section of the system prompt that the client made from its files, such as a rules file or the skills index."""

    name: str
    text: str
    origin: str = ""


class RemoteWorkspace(Frame, frozen=True):
    """What the client's folder defines. `agents` are agent definitions as JSON objects.

    With `checks` the client answers calls of `ostler.project_checks`, which is not in the manifest: the `data` of the
    result has the `commands` that check the edits of the turn, and the `seconds` that each may take.
    """

    sections: tuple[WorkspaceSection, ...] = ()
    agents: tuple[dict[str, Any], ...] = ()
    checks: bool = False


class ResumePoint(Frame, frozen=True):
    """How far a client has read: the last `seq` it processed, in the log with this `epoch`.

    `message_id` and `offset` say how much of an unfinished message it has, in characters.
    """

    epoch: str
    last_seq: int
    message_id: str = ""
    offset: int = 0


class ServerLimits(Frame, frozen=True):
    """Limits that the server enforces: sizes in bytes, times in seconds."""

    max_frame: int = 0
    max_output: int = 0
    calls_per_minute: int = 0
    bytes_per_minute: int = 0
    queue: int = 0
    heartbeat: float = 0
    host_wait: float = 0
    call_timeout: float = 0


class QueueItem(Frame, frozen=True):
    """A message that waits for the end of the running turn."""

    client_message_id: str
    content: str
    who: str = ""


class TurnUsage(Frame, frozen=True):
    """Tokens and cost in US dollars of a turn; the cost is null if the price is unknown."""

    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    cost: float | None = None


class TurnMetadata(Frame, frozen=True):
    """How a turn ended. `code` and `message` are set if it failed, `limit` if a limit ended it."""

    turn_id: str
    reason: str
    model: str = ""
    usage: TurnUsage = TurnUsage()
    duration_ms: int = 0
    code: str = ""
    message: str = ""
    limit: str = ""


class SnapshotCall(Frame, frozen=True):
    """A tool call in a message of a snapshot."""

    tool_call_id: str
    name: str
    arguments: dict[str, Any] = {}


class SnapshotMessage(Frame, frozen=True):
    """A message of the conversation. `tool_call_id`, `name` and `status` are set for the result of a call."""

    role: Literal["user", "assistant", "tool"]
    content: str
    seq: int
    id: str = ""
    who: str = ""
    tool_calls: tuple[SnapshotCall, ...] = ()
    tool_call_id: str = ""
    name: str = ""
    status: ResultStatus | Literal[""] = ""


class SessionSnapshot(Frame, frozen=True):
    """The current conversation. With `truncated` the oldest messages are left out."""

    title: str = ""
    turn_id: str = ""
    messages: tuple[SnapshotMessage, ...] = ()
    todos: tuple[Todo, ...] = ()
    truncated: bool = False
