"""The words of the Agent Client Protocol that both sides use: content, tool calls, plans, modes, options, commands.

Every word can be read and written. Names of kinds are open strings, because newer peers have new ones; `_meta` is kept
as a field of its own and never mixed with the others.
"""

from typing import Any

import msgspec

PROTOCOL_VERSION = 1
AUTH_REQUIRED = -32000
NOT_FOUND = -32002


class AcpStruct(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """What all words of the protocol have."""

    meta: dict[str, Any] | None = msgspec.field(default=None, name="_meta")


class ResourceContents(AcpStruct, frozen=True):
    """A text or a blob that is brought along whole."""

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
    """Words as a block."""
    return ContentBlock("text", text)


class ToolCallContent(AcpStruct, frozen=True):
    """What a tool call has to show: content, diff or terminal."""

    type: str
    content: ContentBlock | None = None
    path: str | None = None
    old_text: str | None = None
    new_text: str | None = None
    terminal_id: str | None = None


class ToolCallLocation(AcpStruct, frozen=True):
    """Where a tool call is at work."""

    path: str
    line: int | None = None


class ToolCallFields(AcpStruct, frozen=True):
    """A tool call, or what has changed of it: what is None stays as it was."""

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
    """What a slash command takes."""

    hint: str


class AvailableCommand(AcpStruct, frozen=True):
    """A slash command the agent offers."""

    name: str
    description: str
    input: AvailableCommandInput | None = None


class SessionMode(AcpStruct, frozen=True):
    """A way of working the agent offers."""

    id: str
    name: str
    description: str | None = None


class SessionModeState(AcpStruct, frozen=True):
    """The ways of working, and the one that is on."""

    current_mode_id: str
    available_modes: tuple[SessionMode, ...]


class AcpModel(AcpStruct, frozen=True):
    """A model, as agents told of them before there were config options."""

    model_id: str
    name: str
    description: str | None = None


class AcpModelState(AcpStruct, frozen=True):
    """The models, and the one that is on."""

    current_model_id: str
    available_models: tuple[AcpModel, ...]


class SessionConfigChoice(AcpStruct, frozen=True):
    """A value of an option, or a group of them."""

    name: str
    value: str | None = None
    description: str | None = None
    group: str | None = None
    options: tuple["SessionConfigChoice", ...] | None = None


class SessionConfigOption(AcpStruct, frozen=True):
    """Something that can be set in a session."""

    id: str
    name: str
    type: str
    current_value: str | bool
    options: tuple[SessionConfigChoice, ...] | None = None
    category: str | None = None
    description: str | None = None

    @property
    def choices(self) -> list[SessionConfigChoice]:
        """The values, out of their groups."""
        listed = self.options or ()
        inside = [choice for group in listed for choice in group.options or ()]
        return [choice for choice in (*listed, *inside) if choice.value is not None]


class PermissionOption(AcpStruct, frozen=True):
    """An answer that may be given to a permission request."""

    option_id: str
    name: str
    kind: str


class EnvVariable(AcpStruct, frozen=True):
    """One variable of an environment."""

    name: str
    value: str


class AcpMcpServer(AcpStruct, frozen=True):
    """An MCP server that the agent shall use: a program, or an address when `type` says http or sse."""

    name: str
    type: str | None = None
    command: str | None = None
    args: tuple[str, ...] | None = None
    env: tuple[EnvVariable, ...] | None = None
    url: str | None = None
    headers: tuple[EnvVariable, ...] | None = None
