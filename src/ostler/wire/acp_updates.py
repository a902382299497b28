"""What an agent tells of a session while it works; each kind can be read and written, and an unknown one is kept."""

from typing import Any

import msgspec

from ostler.wire.acp import AcpStruct, AvailableCommand, ContentBlock, PlanEntry, SessionConfigOption, ToolCallFields
from ostler.wire.acp_decode import decode_lenient

UPDATE_TAG = "sessionUpdate"


class ContentChunk(AcpStruct, frozen=True, tag_field=UPDATE_TAG):
    """More of a message."""

    content: ContentBlock
    message_id: str | None = None


class UserMessageChunk(ContentChunk, frozen=True, tag="user_message_chunk"):
    """What the person said, in a replay or as an echo."""


class AgentMessageChunk(ContentChunk, frozen=True, tag="agent_message_chunk"):
    """More of the answer."""


class AgentThoughtChunk(ContentChunk, frozen=True, tag="agent_thought_chunk"):
    """More of the reasoning."""


class AcpToolCall(ToolCallFields, frozen=True, tag_field=UPDATE_TAG, tag="tool_call"):
    """A tool call; one whose id is known already is a change of it."""


class AcpToolCallUpdate(ToolCallFields, frozen=True, tag_field=UPDATE_TAG, tag="tool_call_update"):
    """A change of a tool call; one whose id is not known yet is a new one."""


class PlanUpdate(AcpStruct, frozen=True, tag_field=UPDATE_TAG, tag="plan"):
    """The plan anew, whole."""

    entries: tuple[PlanEntry, ...]


class AvailableCommandsUpdate(AcpStruct, frozen=True, tag_field=UPDATE_TAG, tag="available_commands_update"):
    """The slash commands anew, all of them."""

    available_commands: tuple[AvailableCommand, ...]


class CurrentModeUpdate(AcpStruct, frozen=True, tag_field=UPDATE_TAG, tag="current_mode_update"):
    """Another mode is on."""

    current_mode_id: str


class ConfigOptionUpdate(AcpStruct, frozen=True, tag_field=UPDATE_TAG, tag="config_option_update"):
    """The options anew, all of them."""

    config_options: tuple[SessionConfigOption, ...]


class SessionInfoUpdate(AcpStruct, frozen=True, tag_field=UPDATE_TAG, tag="session_info_update"):
    """The session has a title."""

    title: str | None = None
    updated_at: str | None = None


class Cost(AcpStruct, frozen=True):
    """What the session has cost so far."""

    amount: float
    currency: str


class UsageUpdate(AcpStruct, frozen=True, tag_field=UPDATE_TAG, tag="usage_update"):
    """How much of the context is used."""

    used: int
    size: int
    cost: Cost | None = None


class UnknownUpdate(msgspec.Struct, frozen=True):
    """A kind this version does not know, word for word."""

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

_UPDATE_TYPES: dict[str, type[KnownUpdate]] = {
    str(kind.__struct_config__.tag): kind
    for kind in (
        *(UserMessageChunk, AgentMessageChunk, AgentThoughtChunk, AcpToolCall, AcpToolCallUpdate, PlanUpdate),
        *(AvailableCommandsUpdate, CurrentModeUpdate, ConfigOptionUpdate, SessionInfoUpdate, UsageUpdate),
    )
}


def decode_update(raw: Any) -> SessionUpdate:
    """The `update` of a `session/update`, whoever sent it."""
    if not isinstance(raw, dict):
        return UnknownUpdate("", {"update": raw})
    kind = raw.get(UPDATE_TAG)
    known = _UPDATE_TYPES.get(kind) if isinstance(kind, str) else None
    return decode_lenient(known, raw) if known else UnknownUpdate(str(kind), raw)
