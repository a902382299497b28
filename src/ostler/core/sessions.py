"""Words about sessions: how one is opened, what it tells of itself, and what may be changed in it."""

from typing import Literal

import msgspec

from ostler.core.permission import Rule
from ostler.core.prompt import Prompt


class OptionChoice(msgspec.Struct, frozen=True, omit_defaults=True):
    """One value an option may take."""

    value: str
    label: str = ""


class SessionOption(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that can be set in a session: model, agent, mode, thinking, security profile.

    Without `choices` any value is taken.
    """

    id: str
    value: str
    label: str = ""
    choices: tuple[OptionChoice, ...] = ()

    def accepts(self, value: str) -> bool:
        """Whether this is a value of it, or none at all."""
        return not (self.choices and value) or any(choice.value == value for choice in self.choices)


class SlashCommand(msgspec.Struct, frozen=True, omit_defaults=True):
    """A slash command that a backend offers."""

    name: str
    description: str = ""
    hint: str = ""


class SessionInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a backend tells of the session it opened.

    `acts_itself`: the far side also runs tools of its own, outside our door.
    """

    backend: str
    options: tuple[SessionOption, ...] = ()
    commands: tuple[SlashCommand, ...] = ()
    can_steer: bool = False
    runs_own_tools: bool = msgspec.field(name="acts_itself", default=False)
    title: str = ""

    def option(self, option_id: str) -> str:
        """The value of one option, or nothing."""
        return next((o.value for o in self.options if o.id == option_id), "")

    def with_option(self, option_id: str, value: str) -> "SessionInfo":
        """The same after one of its options was set; what a choice is called is for its backend to understand."""
        options = (
            msgspec.structs.replace(o, value=value) if o.id == option_id and o.accepts(value) else o
            for o in self.options
        )
        return msgspec.structs.replace(self, options=tuple(options))


class SessionStart(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a backend is told when a session opens; the past is the stage's."""

    session_id: str
    cwd: str
    interactive: bool = True
    options: dict[str, str] = {}


class OpenSessionRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a face asks the house for a session: a new one, the one to `resume`, or a copy of it if `fork`.

    Without a `backend` it is the one that the session was with before, else the engine. `directories` are folders
    besides the workspace that may be read.
    """

    cwd: str
    backend: str = ""
    resume: str = ""
    interactive: bool = True
    options: dict[str, str] = {}
    fork: bool = False
    directories: tuple[str, ...] = ()


class SessionSummary(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of a list of sessions."""

    id: str
    cwd: str
    title: str = ""
    started: str = ""
    changed: str = ""
    turns: int = 0


class SessionQuery(msgspec.Struct, frozen=True, omit_defaults=True):
    """Which sessions to list."""

    cwd: str = ""
    text: str = ""
    limit: int = 50


class Steer(msgspec.Struct, frozen=True, tag="steer"):
    """Words for the turn that runs, seen before its next step."""

    prompt: Prompt


class SetQueue(msgspec.Struct, frozen=True, tag="queue", omit_defaults=True):
    """What waits to be sent after the turn that runs, all of it; a session keeps it, and sends nothing by itself."""

    texts: tuple[str, ...] = ()


class SetOption(msgspec.Struct, frozen=True, tag="set_option"):
    """Model, agent, mode, thinking, security profile: all of them."""

    id: str
    value: str


class Compact(msgspec.Struct, frozen=True, tag="compact", omit_defaults=True):
    """Make the history shorter now, or take the last such summary back."""

    undo: bool = False


class Revert(msgspec.Struct, frozen=True, tag="revert"):
    """Go back to just after the event with this number."""

    to_seq: int


class Rename(msgspec.Struct, frozen=True, tag="rename"):
    """Give the session a title."""

    title: str


class RevokeRule(msgspec.Struct, frozen=True, tag="revoke"):
    """Take a standing rule back."""

    rule: Rule


SessionChange = Steer | SetQueue | SetOption | Compact | Revert | Rename | RevokeRule

TurnState = Literal["idle", "planning", "awaiting_permission", "tool_running", "model_generating", "done", "error"]
TurnEndReason = Literal["done", "limit", "cancelled", "timeout", "failed"]
