"""What the client and the agent ask of each other, and the answers that are more than a word."""

from typing import Any

from ostler.wire.acp import (
    ConfigOption,
    Content,
    EnvVariable,
    McpServer,
    Models,
    Modes,
    PermissionOption,
    ToolCallFields,
    Word,
)

# -- to begin with ---------------------------------------------------------------------------------------------------


class Implementation(Word, frozen=True):
    """Who speaks."""

    name: str
    version: str
    title: str | None = None


class FileSystem(Word, frozen=True):
    """Which files the client lets the agent reach through it."""

    read_text_file: bool = False
    write_text_file: bool = False


class ClientCapabilities(Word, frozen=True):
    """What the client can do for the agent; an object, even an empty one, means yes."""

    fs: FileSystem = FileSystem()
    terminal: bool = False
    elicitation: dict[str, Any] | None = None
    session: dict[str, Any] | None = None
    auth: dict[str, Any] | None = None


class Initialize(Word, frozen=True):
    """The first request."""

    protocol_version: int
    client_capabilities: ClientCapabilities = ClientCapabilities()
    client_info: Implementation | None = None


class PromptCapabilities(Word, frozen=True):
    """Which blocks a prompt may hold besides text and links."""

    image: bool = False
    audio: bool = False
    embedded_context: bool = False


class McpCapabilities(Word, frozen=True):
    """Which MCP servers the agent reaches besides programs."""

    http: bool = False
    sse: bool = False


class SessionCapabilities(Word, frozen=True):
    """What can be done to sessions; an object, even an empty one, means yes."""

    list: Any = None
    resume: Any = None
    close: Any = None
    delete: Any = None
    fork: Any = None
    additional_directories: Any = None


class AgentCapabilities(Word, frozen=True):
    """What the agent can do."""

    load_session: bool = False
    prompt_capabilities: PromptCapabilities = PromptCapabilities()
    mcp_capabilities: McpCapabilities = McpCapabilities()
    session_capabilities: SessionCapabilities = SessionCapabilities()
    auth: dict[str, Any] | None = None

    def can(self, what: str) -> bool:
        """Whether sessions can be listed, resumed, closed, deleted, forked."""
        value = getattr(self.session_capabilities, what)
        return value is not None and value is not False


class AuthMethod(Word, frozen=True):
    """A way to log in."""

    id: str
    name: str
    description: str | None = None
    type: str | None = None
    args: tuple[str, ...] | None = None
    env: Any = None


class Initialized(Word, frozen=True):
    """The answer to the first request."""

    protocol_version: int
    agent_capabilities: AgentCapabilities = AgentCapabilities()
    auth_methods: tuple[AuthMethod, ...] = ()
    agent_info: Implementation | None = None


# -- sessions --------------------------------------------------------------------------------------------------------


class OpenSession(Word, frozen=True):
    """New, loaded, resumed or forked: the last three name a session."""

    cwd: str
    mcp_servers: tuple[McpServer, ...]
    session_id: str | None = None
    additional_directories: tuple[str, ...] | None = None


class SessionOpen(Word, frozen=True):
    """What the agent tells of a session it opened; `models` comes from before there were config options."""

    session_id: str | None = None
    modes: Modes | None = None
    config_options: tuple[ConfigOption, ...] | None = None
    models: Models | None = None


class SetMode(Word, frozen=True):
    """Switch to another mode."""

    session_id: str
    mode_id: str


class SetConfigOption(Word, frozen=True):
    """Set an option; `type` is "boolean" where the value is one."""

    session_id: str
    config_id: str
    value: str | bool
    type: str | None = None


class ListSessions(Word, frozen=True):
    """Which sessions there are, a page at a time."""

    cwd: str | None = None
    cursor: str | None = None


class ListedSession(Word, frozen=True):
    """One of them."""

    session_id: str
    cwd: str
    title: str | None = None
    updated_at: str | None = None


class SessionsListed(Word, frozen=True):
    """A page of them."""

    sessions: tuple[ListedSession, ...]
    next_cursor: str | None = None


class PromptRequest(Word, frozen=True):
    """A turn begins."""

    session_id: str
    prompt: tuple[Content, ...]


class PromptUsage(Word, frozen=True):
    """What a turn used; not yet in the protocol, and many agents send it."""

    total_tokens: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_read_tokens: int | None = None
    thought_tokens: int | None = None


class PromptAnswer(Word, frozen=True):
    """A turn is over; the stop reason is an open string."""

    stop_reason: str
    usage: PromptUsage | None = None


# -- what an agent asks of the client --------------------------------------------------------------------------------


class PermissionRequest(Word, frozen=True):
    """May this tool call be?"""

    session_id: str
    tool_call: ToolCallFields
    options: tuple[PermissionOption, ...]


def chosen(option_id: str) -> dict[str, Any]:
    """The answer that chooses an option."""
    return {"outcome": {"outcome": "selected", "optionId": option_id}}


def nobody_chose() -> dict[str, Any]:
    """The answer when the turn was cancelled before anybody chose."""
    return {"outcome": {"outcome": "cancelled"}}


class ReadTextFile(Word, frozen=True):
    """A text file, or a window of it: `line` is 1-based, `limit` counts lines."""

    session_id: str
    path: str
    line: int | None = None
    limit: int | None = None


class WriteTextFile(Word, frozen=True):
    """A text file, whole."""

    session_id: str
    path: str
    content: str


class CreateTerminal(Word, frozen=True):
    """A command in a terminal of the client's."""

    session_id: str
    command: str
    args: tuple[str, ...] = ()
    env: tuple[EnvVariable, ...] = ()
    cwd: str | None = None
    output_byte_limit: int | None = None


class TerminalRef(Word, frozen=True):
    """Which terminal: for its output, its end, or to kill or release it."""

    session_id: str
    terminal_id: str


class Elicitation(Word, frozen=True):
    """A question to the person: a form by JSON Schema, or an address to visit."""

    message: str
    mode: str | None = None
    session_id: str | None = None
    requested_schema: dict[str, Any] | None = None
    url: str | None = None
    elicitation_id: str | None = None
