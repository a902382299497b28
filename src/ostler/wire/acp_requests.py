"""What the client and the agent ask of each other, and the answers that are more than a word."""

from typing import Any

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

# -- to begin with ---------------------------------------------------------------------------------------------------


class Implementation(AcpStruct, frozen=True):
    """Who speaks."""

    name: str
    version: str
    title: str | None = None


class FileSystemCapabilities(AcpStruct, frozen=True):
    """Which files the client lets the agent reach through it."""

    read_text_file: bool = False
    write_text_file: bool = False


class ClientCapabilities(AcpStruct, frozen=True):
    """What the client can do for the agent; an object, even an empty one, means yes."""

    fs: FileSystemCapabilities = FileSystemCapabilities()
    terminal: bool = False
    elicitation: dict[str, Any] | None = None
    session: dict[str, Any] | None = None
    auth: dict[str, Any] | None = None


class InitializeRequest(AcpStruct, frozen=True):
    """The first request."""

    protocol_version: int
    client_capabilities: ClientCapabilities = ClientCapabilities()
    client_info: Implementation | None = None


class PromptCapabilities(AcpStruct, frozen=True):
    """Which blocks a prompt may hold besides text and links."""

    image: bool = False
    audio: bool = False
    embedded_context: bool = False


class McpCapabilities(AcpStruct, frozen=True):
    """Which MCP servers the agent reaches besides programs."""

    http: bool = False
    sse: bool = False


class SessionCapabilities(AcpStruct, frozen=True):
    """What can be done to sessions; an object, even an empty one, means yes."""

    list: Any = None
    resume: Any = None
    close: Any = None
    delete: Any = None
    fork: Any = None
    additional_directories: Any = None


class AgentCapabilities(AcpStruct, frozen=True):
    """What the agent can do."""

    load_session: bool = False
    prompt_capabilities: PromptCapabilities = PromptCapabilities()
    mcp_capabilities: McpCapabilities = McpCapabilities()
    session_capabilities: SessionCapabilities = SessionCapabilities()
    auth: dict[str, Any] | None = None

    def can(self, capability: str) -> bool:
        """Whether sessions can be listed, resumed, closed, deleted, forked."""
        value = getattr(self.session_capabilities, capability)
        return value is not None and value is not False


class AuthMethod(AcpStruct, frozen=True):
    """A way to log in."""

    id: str
    name: str
    description: str | None = None
    type: str | None = None
    args: tuple[str, ...] | None = None
    env: Any = None


class InitializeResponse(AcpStruct, frozen=True):
    """The answer to the first request."""

    protocol_version: int
    agent_capabilities: AgentCapabilities = AgentCapabilities()
    auth_methods: tuple[AuthMethod, ...] = ()
    agent_info: Implementation | None = None


# -- sessions --------------------------------------------------------------------------------------------------------


class OpenSessionParams(AcpStruct, frozen=True):
    """New, loaded, resumed or forked: the last three name a session."""

    cwd: str
    mcp_servers: tuple[AcpMcpServer, ...]
    session_id: str | None = None
    additional_directories: tuple[str, ...] | None = None


class OpenSessionResponse(AcpStruct, frozen=True):
    """What the agent tells of a session it opened; `models` comes from before there were config options."""

    session_id: str | None = None
    modes: SessionModeState | None = None
    config_options: tuple[SessionConfigOption, ...] | None = None
    models: AcpModelState | None = None


class SetSessionModeRequest(AcpStruct, frozen=True):
    """Switch to another mode."""

    session_id: str
    mode_id: str


class SetSessionConfigOptionRequest(AcpStruct, frozen=True):
    """Set an option; `type` is "boolean" where the value is one."""

    session_id: str
    config_id: str
    value: str | bool
    type: str | None = None


class ListSessionsRequest(AcpStruct, frozen=True):
    """Which sessions there are, a page at a time."""

    cwd: str | None = None
    cursor: str | None = None


class AcpSessionInfo(AcpStruct, frozen=True):
    """One of them."""

    session_id: str
    cwd: str
    title: str | None = None
    updated_at: str | None = None


class ListSessionsResponse(AcpStruct, frozen=True):
    """A page of them."""

    sessions: tuple[AcpSessionInfo, ...]
    next_cursor: str | None = None


class PromptRequest(AcpStruct, frozen=True):
    """A turn begins."""

    session_id: str
    prompt: tuple[ContentBlock, ...]


class PromptUsage(AcpStruct, frozen=True):
    """What a turn used; not yet in the protocol, and many agents send it."""

    total_tokens: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_read_tokens: int | None = None
    thought_tokens: int | None = None


class PromptResponse(AcpStruct, frozen=True):
    """A turn is over; the stop reason is an open string."""

    stop_reason: str
    usage: PromptUsage | None = None


# -- what an agent asks of the client --------------------------------------------------------------------------------


class RequestPermissionRequest(AcpStruct, frozen=True):
    """May this tool call be?"""

    session_id: str
    tool_call: ToolCallFields
    options: tuple[PermissionOption, ...]


def selected_outcome(option_id: str) -> dict[str, Any]:
    """The answer that chooses an option."""
    return {"outcome": {"outcome": "selected", "optionId": option_id}}


def cancelled_outcome() -> dict[str, Any]:
    """The answer when the turn was cancelled before anybody chose."""
    return {"outcome": {"outcome": "cancelled"}}


class ReadTextFileRequest(AcpStruct, frozen=True):
    """A text file, or a window of it: `line` is 1-based, `limit` counts lines."""

    session_id: str
    path: str
    line: int | None = None
    limit: int | None = None


class WriteTextFileRequest(AcpStruct, frozen=True):
    """A text file, whole."""

    session_id: str
    path: str
    content: str


class CreateTerminalRequest(AcpStruct, frozen=True):
    """A command in a terminal of the client's."""

    session_id: str
    command: str
    args: tuple[str, ...] = ()
    env: tuple[EnvVariable, ...] = ()
    cwd: str | None = None
    output_byte_limit: int | None = None


class TerminalRef(AcpStruct, frozen=True):
    """Which terminal: for its output, its end, or to kill or release it."""

    session_id: str
    terminal_id: str


class CreateElicitationRequest(AcpStruct, frozen=True):
    """A question to the person: a form by JSON Schema, or an address to visit."""

    message: str
    mode: str | None = None
    session_id: str | None = None
    requested_schema: dict[str, Any] | None = None
    url: str | None = None
    elicitation_id: str | None = None
