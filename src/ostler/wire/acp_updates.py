"""ACP session updates; an unknown kind is kept unchanged."""

from typing import Any, get_args

import msgspec

from ostler.wire.acp import AcpStruct, AvailableCommand, ContentBlock, PlanEntry, SessionConfigOption, ToolCallFields
from ostler.wire.acp_decode import decode_lenient

UPDATE_TAG = "sessionUpdate"


class ContentChunk(AcpStruct, frozen=True, tag_field=UPDATE_TAG):
    """A part of a message."""

    content: ContentBlock
    message_id: str | None = None


class UserMessageChunk(ContentChunk, frozen=True, tag="user_message_chunk"):
    """A part of a user message, in a replay or as an echo."""


class AgentMessageChunk(ContentChunk, frozen=True, tag="agent_message_chunk"):
    """A part of the agent's answer."""


class AgentThoughtChunk(ContentChunk, frozen=True, tag="agent_thought_chunk"):
    """A part of the agent's reasoning."""


class AcpToolCall(ToolCallFields, frozen=True, tag_field=UPDATE_TAG, tag="tool_call"):
    """A tool call; with a known id it is an update."""


class AcpToolCallUpdate(ToolCallFields, frozen=True, tag_field=UPDATE_TAG, tag="tool_call_update"):
    """An update of a tool call; with an unknown id it is a new call."""


class PlanUpdate(AcpStruct, frozen=True, tag_field=UPDATE_TAG, tag="plan"):
    """The complete new plan."""

    entries: tuple[PlanEntry, ...]


class AvailableCommandsUpdate(AcpStruct, frozen=True, tag_field=UPDATE_TAG, tag="available_commands_update"):
    """All slash commands that are available now."""

    available_commands: tuple[AvailableCommand, ...]


class CurrentModeUpdate(AcpStruct, frozen=True, tag_field=UPDATE_TAG, tag="current_mode_update"):
    """The mode changed."""

    current_mode_id: str


class ConfigOptionUpdate(AcpStruct, frozen=True, tag_field=UPDATE_TAG, tag="config_option_update"):
    """All options with their current values."""

    config_options: tuple[SessionConfigOption, ...]


class SessionInfoUpdate(AcpStruct, frozen=True, tag_field=UPDATE_TAG, tag="session_info_update"):
    """The session's title changed."""

    title: str | None = None
    updated_at: str | None = None


class Cost(AcpStruct, frozen=True):
    """The cost of the session so far."""

    amount: float
    currency: str


class UsageUpdate(AcpStruct, frozen=True, tag_field=UPDATE_TAG, tag="usage_update"):
    """How much of the context window is used."""

    used: int
    size: int
    cost: Cost | None = None


class UnknownUpdate(msgspec.Struct, frozen=True):
    """An update of a kind that this version does not know, unchanged."""

    kind: str
    raw: dict[str, Any]


KnownUpdate = (
    UserMessageChunk
    | AgentMessageChunk
    | AgentThoughtChunk
    | AcpToolCall
    | AcpToolCallUpdate
    | PlanUpdate
    | AvailableCommandsUpdate
    | CurrentModeUpdate
    | ConfigOptionUpdate
    | SessionInfoUpdate
    | UsageUpdate
)
SessionUpdate = KnownUpdate | UnknownUpdate

_UPDATE_TYPES: dict[str, type[KnownUpdate]] = {str(kind.__struct_config__.tag): kind for kind in get_args(KnownUpdate)}


def decode_update(raw: Any) -> SessionUpdate:
    """Decode the `update` of a `session/update` notification."""
    if not isinstance(raw, dict):
        return UnknownUpdate("", {"update": raw})
    kind = raw.get(UPDATE_TAG)
    known = _UPDATE_TYPES.get(kind) if isinstance(kind, str) else None
    return decode_lenient(known, raw) if known else UnknownUpdate(str(kind), raw)
