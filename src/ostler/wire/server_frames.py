"""Messages from the server to a client. Types outside the base protocol go only to clients that announced them."""

from typing import Any, Literal

import msgspec

from ostler.core.permission import Rule
from ostler.wire.client_frames import ApprovalAnswer, ApprovalRequest, ApprovalResolved
from ostler.wire.frames_shared import (
    PROTOCOL_VERSION,
    ErrorCode,
    Feature,
    Frame,
    HostInfo,
    QueueItem,
    ServerLimits,
    SessionSnapshot,
    TurnMetadata,
    always_sent,
)


class SessionCreated(Frame, frozen=True, tag="session.created"):
    """The answer to `hello`, and the first message of a connection. `features` are those that both sides have.

    `role` is what this connection is; `host` the session's tool host, also if it is not connected.
    """

    session_id: str
    epoch: str = ""
    seq: int = 0
    protocol: int = always_sent(PROTOCOL_VERSION)
    server_version: str = ""
    features: tuple[str, ...] = ()
    role: Literal["host", "viewer"] = always_sent("host")
    host: HostInfo = HostInfo()
    host_connected: bool = False
    turn_id: str = ""
    resumed: bool = False
    session_tools: tuple[str, ...] = ()
    limits: ServerLimits = ServerLimits()
    title: str = ""
    model: str = ""


class AssistantDelta(Frame, frozen=True, tag="assistant.delta"):
    """The next text of a message. `offset` is where it starts: the text becomes `text[:offset] + content`."""

    session_id: str
    content: str
    seq: int = 0
    epoch: str = ""
    message_id: str = ""
    offset: int = 0


class AssistantDone(Frame, frozen=True, tag="assistant.done"):
    """The turn ended; the last message of a turn."""

    session_id: str
    metadata: TurnMetadata
    seq: int = 0
    epoch: str = ""
    trace_id: str = ""


class ToolCallMessage(Frame, frozen=True, tag="tool.call"):
    """A call for the tool host. It may arrive again after a reconnect; a host runs an id once.

    `rules` are layers of permission rules that can only restrict the call. `origin` is `validation` for a check after
    edits, which a client believes only if it named the command itself.
    """

    session_id: str
    tool_call_id: str
    name: str
    arguments: dict[str, Any]
    seq: int = 0
    epoch: str = ""
    trace_id: str = ""
    host: HostInfo = HostInfo()
    rules: tuple[tuple[Rule, ...], ...] = ()
    origin: Literal["model", "validation"] = always_sent("model")


class ErrorMessage(Frame, frozen=True, tag="error"):
    """Something failed. The other fields name what it refers to; `retry_after` is in seconds."""

    session_id: str
    message: str
    code: ErrorCode = always_sent("internal")
    retry_after: float | None = None
    tool_call_id: str = ""
    client_message_id: str = ""
    request_id: str = ""
    ask_id: str = ""
    trace_id: str = ""


class Heartbeat(Frame, frozen=True, tag="heartbeat"):
    """Sent when nothing else was sent for the time in `limits.heartbeat`."""

    session_id: str = ""


class EventMessage(Frame, frozen=True, tag="event"):
    """An event of the session's log, encoded as in the journal."""

    session_id: str
    seq: int
    epoch: str
    time: float
    event: msgspec.Raw


class Resync(Frame, frozen=True, tag="resync"):
    """The log cannot be continued from the client's position. Live messages after `seq` follow."""

    session_id: str
    reason: Literal["epoch", "ahead", "expired"]
    seq: int
    epoch: str
    snapshot: SessionSnapshot


class MessageAccepted(Frame, frozen=True, tag="message.accepted"):
    """The answer to a `user.message`; `duplicate` means that its id was received before and nothing was started."""

    session_id: str
    client_message_id: str
    status: Literal["started", "queued", "steered", "duplicate"]
    position: int = 0
    turn_id: str = ""
    trace_id: str = ""


class QueueChanged(Frame, frozen=True, tag="queue.changed"):
    """The complete list of waiting messages."""

    session_id: str
    items: tuple[QueueItem, ...] = ()


class HostStatus(Frame, frozen=True, tag="host.status"):
    """Whether the tool host is connected. `waiting_calls` wait for it for at most `seconds_left`."""

    session_id: str
    host: HostInfo
    connected: bool
    waiting_calls: int = 0
    seconds_left: float = 0


class ManifestChanged(Frame, frozen=True, tag="manifest.changed"):
    """The tools that can be called now, after the host changed its manifest."""

    session_id: str
    tools: tuple[str, ...] = ()


class ToolCancel(Frame, frozen=True, tag="tool.cancel"):
    """The host must stop a call and send its result soon; later the server ignores it."""

    session_id: str
    tool_call_id: str
    seconds_left: float = 0


class ChangeResult(Frame, frozen=True, tag="change.result"):
    """The answer to `session.change`; `applied` is false if the session does not support the change now."""

    session_id: str
    request_id: str
    applied: bool
    message: str = ""


ServerFrame = (
    SessionCreated
    | AssistantDelta
    | AssistantDone
    | ToolCallMessage
    | ErrorMessage
    | Heartbeat
    | EventMessage
    | Resync
    | MessageAccepted
    | QueueChanged
    | HostStatus
    | ManifestChanged
    | ToolCancel
    | ChangeResult
    | ApprovalRequest
    | ApprovalAnswer
    | ApprovalResolved
)

# The feature that a client must announce to get a type; `Resync` goes to clients that sent `resume`.
NEEDED_FEATURE: dict[type[msgspec.Struct], Feature] = {
    EventMessage: "events",
    MessageAccepted: "queue",
    QueueChanged: "queue",
    HostStatus: "host",
    ManifestChanged: "manifest",
    ToolCancel: "tool.cancel",
    ChangeResult: "changes",
    ApprovalRequest: "approvals",
    ApprovalAnswer: "approvals",
    ApprovalResolved: "approvals",
}
