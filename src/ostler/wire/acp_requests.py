"""ACP requests and responses."""

from typing import Annotated, Any

import msgspec

from ostler.wire.acp import (
    AcpMcpServer,
    AcpModelState,
    AcpStruct,
    ContentBlock,
    EnvVariable,
    PermissionOption,
    SessionConfigOption,
    SessionModeState,
    ToolCallFields,
)

# -- initialization --------------------------------------------------------------------------------------------------


class Implementation(AcpStruct, frozen=True):
    """Name and version of a client or an agent."""

    name: str
    version: str
    title: str | None = None


class FileSystemCapabilities(AcpStruct, frozen=True):
    """The file requests that the client accepts."""

    read_text_file: bool = False
    write_text_file: bool = False


class ClientCapabilities(AcpStruct, frozen=True):
    """The client's capabilities; an object, even an empty one, means that it is supported."""

    fs: FileSystemCapabilities = FileSystemCapabilities()
    terminal: bool = False
    elicitation: dict[str, Any] | None = None
    session: dict[str, Any] | None = None
    auth: dict[str, Any] | None = None


class InitializeRequest(AcpStruct, frozen=True):
    """The first request of a connection."""

    protocol_version: int
    client_capabilities: ClientCapabilities = ClientCapabilities()
    client_info: Implementation | None = None


class PromptCapabilities(AcpStruct, frozen=True):
    """The content blocks a prompt may contain besides text and links."""

    image: bool = False
    audio: bool = False
    embedded_context: bool = False


class McpCapabilities(AcpStruct, frozen=True):
    """The MCP transports the agent supports besides stdio."""

    http: bool = False
    sse: bool = False


class SessionCapabilities(AcpStruct, frozen=True):
    """The session requests the agent accepts; an object, even an empty one, means that it is supported."""

    list: Any = None
    resume: Any = None
    close: Any = None
    delete: Any = None
    fork: Any = None
    additional_directories: Any = None


class AgentCapabilities(AcpStruct, frozen=True):
    """The agent's capabilities."""

    load_session: bool = False
    prompt_capabilities: PromptCapabilities = PromptCapabilities()
    mcp_capabilities: McpCapabilities = McpCapabilities()
    session_capabilities: SessionCapabilities = SessionCapabilities()
    auth: dict[str, Any] | None = None

    def can(self, capability: str) -> bool:
        """Return whether sessions support `list`, `resume`, `close`, `delete` or `fork`."""
        value = getattr(self.session_capabilities, capability)
        return value is not None and value is not False


class AuthMethod(AcpStruct, frozen=True):
    """An authentication method."""

    id: str
    name: str
    description: str | None = None
    type: str | None = None
    args: tuple[str, ...] | None = None
    env: Any = None


class InitializeResponse(AcpStruct, frozen=True):
    """The response to `initialize`."""

    protocol_version: int
    agent_capabilities: AgentCapabilities = AgentCapabilities()
    auth_methods: tuple[AuthMethod, ...] = ()
    agent_info: Implementation | None = None


# -- sessions --------------------------------------------------------------------------------------------------------


class OpenSessionParams(AcpStruct, frozen=True):
    """Parameters to create, load, resume or fork a session; the last three set `session_id`."""

    cwd: str
    mcp_servers: tuple[AcpMcpServer, ...]
    session_id: str | None = None
    additional_directories: tuple[str, ...] | None = None


class OpenSessionResponse(AcpStruct, frozen=True):
    """An opened session; `models` is the older form of a config option."""

    session_id: str | None = None
    modes: SessionModeState | None = None
    config_options: tuple[SessionConfigOption, ...] | None = None
    models: AcpModelState | None = None


class SetSessionModeRequest(AcpStruct, frozen=True):
    """Switch to another mode."""

    session_id: str
    mode_id: str


class SetSessionConfigOptionRequest(AcpStruct, frozen=True):
    """Set an option; `type` is "boolean" for a boolean value."""

    session_id: str
    config_id: str
    value: str | bool
    type: str | None = None


class ListSessionsRequest(AcpStruct, frozen=True):
    """List sessions, one page at a time."""

    cwd: str | None = None
    cursor: str | None = None


class AcpSessionInfo(AcpStruct, frozen=True):
    """A session in a list."""

    session_id: str
    cwd: str
    title: str | None = None
    updated_at: str | None = None


class ListSessionsResponse(AcpStruct, frozen=True):
    """A page of sessions."""

    sessions: tuple[AcpSessionInfo, ...]
    next_cursor: str | None = None


class PromptRequest(AcpStruct, frozen=True):
    """Start a turn."""

    session_id: str
    prompt: tuple[ContentBlock, ...]


class PromptUsage(AcpStruct, frozen=True):
    """The token usage of a turn; many agents send it although the protocol does not define it yet."""

    total_tokens: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_read_tokens: int | None = None
    thought_tokens: int | None = None


class PromptResponse(AcpStruct, frozen=True):
    """The end of a turn; the stop reason is an open string."""

    stop_reason: str
    usage: PromptUsage | None = None


# -- requests to the client ------------------------------------------------------------------------------------------

NonEmpty = Annotated[str, msgspec.Meta(min_length=1)]
Count = Annotated[int, msgspec.Meta(ge=0)]


class ToolCallRef(AcpStruct, frozen=True):
    """The required part of a tool call in a permission request."""

    tool_call_id: NonEmpty


class PermissionRequestCore(AcpStruct, frozen=True):
    """What a permission request must contain to be valid; the rest of the call is decoded leniently."""

    session_id: str
    tool_call: ToolCallRef
    options: tuple[PermissionOption, ...]


class RequestPermissionRequest(AcpStruct, frozen=True):
    """Ask for permission to run a tool call."""

    session_id: str
    tool_call: ToolCallFields
    options: tuple[PermissionOption, ...]


def selected_outcome(option_id: str) -> dict[str, Any]:
    """Return the answer that selects a permission option."""
    return {"outcome": {"outcome": "selected", "optionId": option_id}}


def cancelled_outcome() -> dict[str, Any]:
    """Return the answer for a turn that was cancelled before a selection."""
    return {"outcome": {"outcome": "cancelled"}}


class ReadTextFileRequest(AcpStruct, frozen=True):
    """Read a text file, optionally `limit` lines from the 1-based `line` on."""

    session_id: str
    path: NonEmpty
    line: Count | None = None
    limit: Count | None = None


class WriteTextFileRequest(AcpStruct, frozen=True):
    """Write a complete text file."""

    session_id: str
    path: NonEmpty
    content: str


class CreateTerminalRequest(AcpStruct, frozen=True):
    """Run a command in one of the client's terminals."""

    session_id: str
    command: NonEmpty
    args: tuple[str, ...] = ()
    env: tuple[EnvVariable, ...] = ()
    cwd: str | None = None
    output_byte_limit: Count | None = None


class TerminalRef(AcpStruct, frozen=True):
    """A terminal, in requests for its output or exit, or to kill or release it."""

    session_id: str
    terminal_id: str


class CreateElicitationRequest(AcpStruct, frozen=True):
    """Ask the user a question: a form described by a JSON Schema, or a URL to visit."""

    message: str
    mode: str | None = None
    session_id: str | None = None
    requested_schema: dict[str, Any] | None = None
    url: str | None = None
    elicitation_id: str | None = None
