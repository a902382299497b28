"""ACP data types used by both sides: content, tool calls, plans, modes, options, commands.

Kinds are open strings, because newer peers have new ones; `_meta` is kept in a separate field.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from ostler.core.sessions import McpServerRequest

PROTOCOL_VERSION = 1
AUTH_REQUIRED = -32000
NOT_FOUND = -32002


class AcpStruct(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """Base class of the protocol's structs."""

    meta: dict[str, Any] | None = msgspec.field(default=None, name="_meta")


class ResourceContents(AcpStruct, frozen=True):
    """An embedded text or blob."""

    uri: str
    text: str | None = None
    blob: str | None = None
    mime_type: str | None = None


class ContentBlock(AcpStruct, frozen=True):
    """A block of a message: text, image, audio, resource_link, resource."""

    type: str
    text: str | None = None
    data: str | None = None
    mime_type: str | None = None
    uri: str | None = None
    name: str | None = None
    title: str | None = None
    description: str | None = None
    size: int | None = None
    resource: ResourceContents | None = None
    annotations: dict[str, Any] | None = None


def text_content(text: str) -> ContentBlock:
    """Return a text block."""
    return ContentBlock("text", text)


class ToolCallContent(AcpStruct, frozen=True):
    """Output of a tool call: content, diff or terminal."""

    type: str
    content: ContentBlock | None = None
    path: str | None = None
    old_text: str | None = None
    new_text: str | None = None
    terminal_id: str | None = None


class ToolCallLocation(AcpStruct, frozen=True):
    """A file location that a tool call works on."""

    path: str
    line: int | None = None


class ToolCallFields(AcpStruct, frozen=True):
    """A tool call or an update of one; None means unchanged."""

    tool_call_id: str
    title: str | None = None
    kind: str | None = None
    status: str | None = None
    content: tuple[ToolCallContent, ...] | None = None
    locations: tuple[ToolCallLocation, ...] | None = None
    raw_input: Any = None
    raw_output: Any = None
    name: str | None = None


class PlanEntry(AcpStruct, frozen=True):
    """One step of a plan."""

    content: str
    priority: str
    status: str


class AvailableCommandInput(AcpStruct, frozen=True):
    """The input of a slash command."""

    hint: str


class AvailableCommand(AcpStruct, frozen=True):
    """A slash command of the agent."""

    name: str
    description: str
    input: AvailableCommandInput | None = None


class SessionMode(AcpStruct, frozen=True):
    """A mode of the agent."""

    id: str
    name: str
    description: str | None = None


class SessionModeState(AcpStruct, frozen=True):
    """The available modes and the current one."""

    current_mode_id: str
    available_modes: tuple[SessionMode, ...]


class AcpModel(AcpStruct, frozen=True):
    """A model, in the form used before config options."""

    model_id: str
    name: str
    description: str | None = None


class AcpModelState(AcpStruct, frozen=True):
    """The available models and the current one."""

    current_model_id: str
    available_models: tuple[AcpModel, ...]


class SessionConfigChoice(AcpStruct, frozen=True):
    """A value of an option, or a group of values."""

    name: str
    value: str | None = None
    description: str | None = None
    group: str | None = None
    options: tuple["SessionConfigChoice", ...] | None = None


class SessionConfigOption(AcpStruct, frozen=True):
    """An option of a session."""

    id: str
    name: str
    type: str
    current_value: str | bool
    options: tuple[SessionConfigChoice, ...] | None = None
    category: str | None = None
    description: str | None = None

    @property
    def choices(self) -> list[SessionConfigChoice]:
        """All values, without their groups."""
        top_level = self.options or ()
        grouped = [choice for group in top_level for choice in group.options or ()]
        return [choice for choice in (*top_level, *grouped) if choice.value is not None]


class PermissionOption(AcpStruct, frozen=True):
    """A possible answer to a permission request."""

    option_id: str
    name: str
    kind: str


class EnvVariable(AcpStruct, frozen=True):
    """An environment variable."""

    name: str
    value: str


class AcpMcpServer(AcpStruct, frozen=True):
    """An MCP server for the agent: a program, or a URL if `type` is http or sse."""

    name: str
    type: str | None = None
    command: str | None = None
    args: tuple[str, ...] | None = None
    env: tuple[EnvVariable, ...] | None = None
    url: str | None = None
    headers: tuple[EnvVariable, ...] | None = None

    @classmethod
    def from_request(cls, request: McpServerRequest) -> "AcpMcpServer":
        """Return the server in ACP form, which requires the arrays even if they are empty."""
        if request.url:
            return cls(request.name, request.type, url=request.url, headers=_variables(request.headers))
        command, *args = request.command
        return cls(request.name, command=command, args=tuple(args), env=_variables(request.env))

    def to_request(self) -> McpServerRequest:
        """Return the server as a request of the session."""
        return McpServerRequest(
            self.name,
            self.type or "stdio",
            (self.command, *(self.args or ())) if self.command else (),
            {variable.name: variable.value for variable in self.env or ()},
            self.url or "",
            {header.name: header.value for header in self.headers or ()},
        )


def _variables(values: Mapping[str, str]) -> tuple[EnvVariable, ...]:
    return tuple(EnvVariable(name, value) for name, value in values.items())


def text_of(call: ToolCallFields) -> str:
    """Return the text in the call's content."""
    return "\n".join(content_text(item.content) for item in call.content or () if item.content)


def content_text(content: ContentBlock) -> str:
    """Return a content block as text; other content is represented by its name or type."""
    if content.type == "text":
        return content.text or ""
    if content.type == "resource_link":
        return f"[{content.name or content.uri}]({content.uri})"
    if content.type == "resource" and content.resource:
        return content.resource.text or f"[{content.resource.uri}]"
    return f"[{content.type}]"
