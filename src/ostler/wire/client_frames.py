"""Messages from a client to the server. Names and fields of the base protocol come first; all others are optional."""

from typing import Any, Literal

import msgspec

from ostler.core.display import Display
from ostler.core.permission import Decision, Permission, Question, QuestionReply
from ostler.core.prompt import ImageContent, PromptContent, PromptTarget
from ostler.core.sessions import SessionChange
from ostler.core.tools import ResultStatus
from ostler.wire.frames_shared import Frame, HostInfo, RemoteWorkspace, ResumePoint, ToolManifest


class Hello(Frame, frozen=True, tag="hello"):
    """The first message of a connection. Without a manifest the client only watches and controls the session.

    With `take_host` it replaces another tool host that is connected.
    """

    client_version: str = ""
    tool_manifest: ToolManifest | None = None
    workspace_root: str = ""
    protocol: int = 1
    features: tuple[str, ...] = ()
    resume: ResumePoint | None = None
    host: HostInfo = HostInfo()
    take_host: bool = False
    workspace: RemoteWorkspace | None = None
    options: dict[str, str] = msgspec.field(default_factory=dict)


class UserMessageFrame(Frame, frozen=True, tag="user.message"):
    """Starts a turn, or waits in the queue while one runs. One `client_message_id` starts at most one turn.

    `blocks` is the whole prompt; then `content` is not used. `notes` are for the model, before the prompt.
    """

    content: str
    session_id: str = ""
    client_message_id: str = ""
    images: tuple[ImageContent, ...] = ()
    blocks: tuple[PromptContent, ...] = ()
    target: PromptTarget | None = None
    notes: tuple[str, ...] = ()
    delivery: Literal["queue", "steer"] = "queue"
    trace_id: str = ""


class ToolResultMessage(Frame, frozen=True, tag="tool.result"):
    """The result of a call. An `output` that is not a string is given to the model as JSON.

    An `error` without a `status` means that the call failed. `written` lists the files that the call wrote.
    """

    tool_call_id: str
    output: Any = None
    session_id: str = ""
    error: str = ""
    status: ResultStatus | Literal[""] = ""
    display: Display | None = None
    data: Any = None
    images: tuple[ImageContent, ...] = ()
    written: tuple[str, ...] = ()
    duration_ms: int = 0
    trace_id: str = ""


class CancelMessage(Frame, frozen=True, tag="cancel"):
    """Ends the running turn. With a `turn_id`, only if that turn is the running one."""

    session_id: str = ""
    turn_id: str = ""


class ToolProgressMessage(Frame, frozen=True, tag="tool.progress"):
    """What to show for a running call; replaces the previous progress."""

    tool_call_id: str
    display: Display
    session_id: str = ""


class ManifestChange(Frame, frozen=True, tag="manifest.change"):
    """The complete new manifest of the tool host; used from the next model request on."""

    tool_manifest: ToolManifest
    session_id: str = ""


class QueueWithdraw(Frame, frozen=True, tag="queue.withdraw"):
    """Removes a waiting message from the queue, from any client."""

    client_message_id: str
    session_id: str = ""


class ApprovalRequest(Frame, frozen=True, tag="approval.request"):
    """An approval request or a question. Either `permission` or `question` is set.

    The tool host sends it; the server passes it on to the other clients, and sends its own. With `only_at_host` others
    may not answer it, and `permission` has only a title.
    """

    ask_id: str
    session_id: str = ""
    permission: Permission | None = None
    question: Question | None = None
    once_only: bool = False
    host: HostInfo = HostInfo()
    only_at_host: bool = False


class ApprovalAnswer(Frame, frozen=True, tag="approval.answer"):
    """An answer to a request; the first is used. The server passes it to the tool host and sets `who` itself."""

    ask_id: str
    session_id: str = ""
    decision: Decision | None = None
    reply: QuestionReply | None = None
    who: str = ""


class ApprovalResolved(Frame, frozen=True, tag="approval.resolved"):
    """A request was answered or withdrawn; sent by the tool host for its own, and by the server to everyone."""

    ask_id: str
    session_id: str = ""
    decision: Decision | None = None
    reply: QuestionReply | None = None


class ChangeRequest(Frame, frozen=True, tag="session.change"):
    """A change of the session: steer, an option such as the model, compact, rename. Answered by `change.result`."""

    request_id: str
    change: SessionChange
    session_id: str = ""


ClientFrame = (
    Hello
    | UserMessageFrame
    | ToolResultMessage
    | CancelMessage
    | ToolProgressMessage
    | ManifestChange
    | QueueWithdraw
    | ApprovalRequest
    | ApprovalAnswer
    | ApprovalResolved
    | ChangeRequest
)
