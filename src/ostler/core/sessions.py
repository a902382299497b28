"""Session data: how to open one, its info and options, and the changes that can be applied to it."""

from typing import Literal

import msgspec

from ostler.core.permission import Rule
from ostler.core.prompt import Prompt


class OptionChoice(msgspec.Struct, frozen=True, omit_defaults=True):
    """A possible value of an option."""

    value: str
    label: str = ""
    description: str = ""


class SessionOption(msgspec.Struct, frozen=True, omit_defaults=True):
    """An option of a session: model, agent, mode, thinking or security profile.

    Without `choices` it accepts any value. With `has_default` an empty value selects the backend's default.
    """

    id: str
    value: str
    label: str = ""
    choices: tuple[OptionChoice, ...] = ()
    has_default: bool = False

    def accepts(self, value: str) -> bool:
        """Return whether `value` is one of the choices; an empty value is always accepted."""
        return not (self.choices and value) or any(choice.value == value for choice in self.choices)


class SlashCommand(msgspec.Struct, frozen=True, omit_defaults=True):
    """A slash command that a backend offers."""

    name: str
    description: str = ""
    hint: str = ""


class SessionInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a backend reports about the session it opened.

    `runs_own_tools` means that the remote side also runs tools of its own, outside the tool host. `can_continue` means
    that a finished turn can be continued, `has_agents` that the backend uses the session's agent and runs subagents.
    `can_take_over` means that an interrupted turn can be continued from its records, also in another process,
    `keeps_queue` that prompts which are sent during a turn wait on the remote side, which starts them.
    `facts` are pairs of name and value that `/status` shows, such as the address of the server.
    """

    backend: str
    options: tuple[SessionOption, ...] = ()
    commands: tuple[SlashCommand, ...] = ()
    can_steer: bool = False
    runs_own_tools: bool = msgspec.field(name="acts_itself", default=False)
    title: str = ""
    can_continue: bool = False
    has_agents: bool = False
    can_take_over: bool = False
    keeps_queue: bool = False
    facts: tuple[tuple[str, str], ...] = ()

    @property
    def agent_name(self) -> str:
        """The name of an external agent: that of the backend without its kind."""
        return self.backend.partition(":")[2] or self.backend

    def option(self, option_id: str) -> str:
        """Return the value of an option, or an empty string if there is no such option."""
        return next((o.value for o in self.options if o.id == option_id), "")

    def fact(self, name: str) -> str:
        """Return the value of a fact, or an empty string if there is none."""
        return dict(self.facts).get(name, "")

    def with_option(self, option_id: str, value: str) -> "SessionInfo":
        """Return a copy with one option set. A value that is not one of its choices leaves the option unchanged."""
        options = (
            msgspec.structs.replace(o, value=value) if o.id == option_id and o.accepts(value) else o
            for o in self.options
        )
        return msgspec.structs.replace(self, options=tuple(options))


class SessionStart(msgspec.Struct, frozen=True, omit_defaults=True):
    """The parameters with which a backend opens a session; earlier events come from the `BackendContext`.

    `options` are the backend's own; `agent` is the session's active agent.
    """

    session_id: str
    cwd: str
    interactive: bool = True
    options: dict[str, str] = {}
    agent: str = ""


class McpServerRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """An MCP server that a frontend's client passes in: a program, or a URL. `type` is stdio, http or sse."""

    name: str
    type: str = "stdio"
    command: tuple[str, ...] = ()
    env: dict[str, str] = {}
    url: str = ""
    headers: dict[str, str] = {}


class OpenSessionRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """A frontend's request for a session: a new one, the one to `resume`, or a copy of it with `fork`.

    `backend` defaults to the backend of the resumed session, else to the engine. `directories` are additional folders
    that may be read. `mcp_servers` are used besides the configured ones. With `takeover` a turn that another process
    left unfinished is continued, if the backend can, and is then the running turn. Without it the turn is ended.
    """

    cwd: str
    backend: str = ""
    resume: str = ""
    interactive: bool = True
    options: dict[str, str] = {}
    fork: bool = False
    directories: tuple[str, ...] = ()
    mcp_servers: tuple[McpServerRequest, ...] = ()
    takeover: bool = False


class SessionSummary(msgspec.Struct, frozen=True, omit_defaults=True):
    """An entry in a list of sessions."""

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
    """Send a prompt to the running turn; the model sees it before its next step."""

    prompt: Prompt


class SetQueue(msgspec.Struct, frozen=True, tag="queue", omit_defaults=True):
    """Save the complete list of prompts to send after the running turn; the session does not send them itself.

    A remote side that keeps the queue also removes the prompts of other clients with the ids in `withdrawn`.
    """

    texts: tuple[str, ...] = ()
    prompts: tuple[Prompt, ...] = ()
    withdrawn: tuple[str, ...] = ()


class SetOption(msgspec.Struct, frozen=True, tag="set_option"):
    """Set an option: model, agent, mode, thinking or security profile."""

    id: str
    value: str


class Compact(msgspec.Struct, frozen=True, tag="compact", omit_defaults=True):
    """Replace the history by a summary now, or undo the last such summary."""

    undo: bool = False


class Revert(msgspec.Struct, frozen=True, tag="revert"):
    """Revert all events after the one with this number."""

    to_seq: int


class Rename(msgspec.Struct, frozen=True, tag="rename"):
    """Set the title of the session."""

    title: str


class RevokeRule(msgspec.Struct, frozen=True, tag="revoke"):
    """Revoke a standing rule."""

    rule: Rule


class TakeTools(msgspec.Struct, frozen=True, tag="take_tools"):
    """Run the tools of a server's session on this machine from now on."""


SessionChange = Steer | SetQueue | SetOption | Compact | Revert | Rename | RevokeRule | TakeTools

Profile = Literal["paranoid", "balanced", "god_mode"]
Mode = Literal["ask", "accept-edits", "plan"]
Thinking = Literal["off", "low", "medium", "high"]
TurnState = Literal["idle", "planning", "awaiting_permission", "tool_running", "model_generating", "done", "error"]
TurnEndReason = Literal["done", "limit", "cancelled", "timeout", "failed"]
