"""What an agent tells of a session while it works; each kind can be read and written, and an unknown one is kept."""

from typing import Any

import msgspec

from ostler.wire.acp import Command, ConfigOption, Content, PlanEntry, ToolCallFields, Word
from ostler.wire.acp_read import read

KIND = "sessionUpdate"


class Chunk(Word, frozen=True, tag_field=KIND):
    """More of a message."""

    content: Content
    message_id: str | None = None


class UserMessageChunk(Chunk, frozen=True, tag="user_message_chunk"):
    """What the person said, in a replay or as an echo."""


class AgentMessageChunk(Chunk, frozen=True, tag="agent_message_chunk"):
    """More of the answer."""


class AgentThoughtChunk(Chunk, frozen=True, tag="agent_thought_chunk"):
    """More of the reasoning."""


class ToolCallBegun(ToolCallFields, frozen=True, tag_field=KIND, tag="tool_call"):
    """A tool call; one whose id is known already is a change of it."""


class ToolCallChanged(ToolCallFields, frozen=True, tag_field=KIND, tag="tool_call_update"):
    """A change of a tool call; one whose id is not known yet is a new one."""


class PlanTold(Word, frozen=True, tag_field=KIND, tag="plan"):
    """The plan anew, whole."""

    entries: tuple[PlanEntry, ...]


class CommandsTold(Word, frozen=True, tag_field=KIND, tag="available_commands_update"):
    """The slash commands anew, all of them."""

    available_commands: tuple[Command, ...]


class ModeChanged(Word, frozen=True, tag_field=KIND, tag="current_mode_update"):
    """Another mode is on."""

    current_mode_id: str


class ConfigTold(Word, frozen=True, tag_field=KIND, tag="config_option_update"):
    """The options anew, all of them."""

    config_options: tuple[ConfigOption, ...]


class InfoTold(Word, frozen=True, tag_field=KIND, tag="session_info_update"):
    """The session has a title."""

    title: str | None = None
    updated_at: str | None = None


class Cost(Word, frozen=True):
    """What the session has cost so far."""

    amount: float
    currency: str


class UsageTold(Word, frozen=True, tag_field=KIND, tag="usage_update"):
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
    | ToolCallBegun
    | ToolCallChanged
    | PlanTold
    | CommandsTold
    | ModeChanged
    | ConfigTold
    | InfoTold
    | UsageTold
)
Update = KnownUpdate | UnknownUpdate

_KINDS: dict[str, type[KnownUpdate]] = {
    str(kind.__struct_config__.tag): kind
    for kind in (
        *(UserMessageChunk, AgentMessageChunk, AgentThoughtChunk, ToolCallBegun, ToolCallChanged, PlanTold),
        *(CommandsTold, ModeChanged, ConfigTold, InfoTold, UsageTold),
    )
}


def read_update(raw: Any) -> Update:
    """The `update` of a `session/update`, whoever sent it."""
    if not isinstance(raw, dict):
        return UnknownUpdate("", {"update": raw})
    kind = raw.get(KIND)
    known = _KINDS.get(kind) if isinstance(kind, str) else None
    return read(known, raw) if known else UnknownUpdate(str(kind), raw)
