"""Tool calls, tool results and tool declarations."""

from typing import Any, Literal

import msgspec

from ostler.core.display import Display
from ostler.core.errors import Fault
from ostler.core.permission import Rule
from ostler.core.prompt import ImageContent

ToolKind = Literal["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "other"]
ToolReach = Literal["files", "commands", "anything"]
ToolPlace = Literal["session", "workspace"]
CallOrigin = Literal["model", "person", "protocol", "validation"]
ResultStatus = Literal["ok", "failed", "denied", "cancelled", "unknown"]


# Names of calls that cannot run, with the reason; there are no tools with these names. `raw` is their text.
UNREADABLE_CALL, QUOTED_CALL = "tool_call", "quoted_call"
CALLS_THAT_CANNOT_RUN = {
    UNREADABLE_CALL: "the model's call could not be read, so nothing ran; the model gets the reason",
    QUOTED_CALL: "the model's call looks like a quotation, so nothing ran; the model gets the reason",
}


class ToolCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool call. `rules` can only restrict what the policy allows: single rules form one layer, tuples are layers.

    `raw` is the text of the arguments as received. `source` is the whole call as the model wrote it in its answer, if
    it made the call there.
    """

    id: str
    tool: str
    arguments: dict[str, Any]
    origin: CallOrigin = "model"
    rules: tuple[Rule | tuple[Rule, ...], ...] = ()
    raw: str = ""
    source: str = ""

    def rule_layers(self) -> tuple[tuple[Rule, ...], ...]:
        """Return the layers of `rules`; the last match of each is used, and over all layers the strictest result."""
        single = tuple(rule for rule in self.rules if isinstance(rule, Rule))
        layers = tuple(layer for layer in self.rules if not isinstance(layer, Rule))
        return (single, *layers) if single else layers

    def without_source(self) -> "ToolCall":
        """Return the call without its source, which the message has already."""
        return msgspec.structs.replace(self, source="") if self.source else self


class ToolResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of a call: text for the model, a display for the user, and structured data."""

    call_id: str
    status: ResultStatus
    for_model: str
    for_human: Display = Display()
    data: Any = None
    images: tuple[ImageContent, ...] = ()
    fault: Fault | None = None


# Begins the note with the instructions of an MCP server, at the end of the first result of one of its tools.
SERVER_NOTE = "\n[the MCP server "


class ToolSpec(msgspec.Struct, frozen=True, omit_defaults=True):
    """The declaration of a tool for a model. `effects` is False if it cannot change anything outside the session.

    `reach` is what it changes: only files, through the workspace; what a command of the workspace can; or anything.

    `runs_in` is where it runs if the loop and the workspace are on different machines: a `session` tool acts on the
    session (todos, subagents) and runs where the loop runs, a `workspace` tool where the files and commands are.
    `namespace` is the first part of the name of an MCP tool, up to the underscore: the XNL dialect calls it
    `<namespace>.<rest of the name>`.
    """

    name: str
    kind: ToolKind
    description: str
    schema: dict[str, Any]
    effects: bool = True
    reach: ToolReach = "anything"
    runs_in: ToolPlace = "workspace"
    namespace: str = ""


class Todo(msgspec.Struct, frozen=True, omit_defaults=True):
    """An item of the todo list."""

    id: str
    content: str
    status: Literal["pending", "in_progress", "completed"] = "pending"
    priority: Literal["high", "medium", "low"] = "medium"


class ChildTask(msgspec.Struct, frozen=True, omit_defaults=True):
    """A task for a child session."""

    id: str
    agent: str
    title: str
    prompt: str


class FoundChecks(msgspec.Struct, frozen=True):
    """The commands that check the edits of a turn, and how long each may take."""

    commands: tuple[str, ...] = ()
    seconds: float = 600.0


NO_CHECKS = FoundChecks()
