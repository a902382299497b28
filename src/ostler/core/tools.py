"""Tool calls, tool results and tool declarations."""

from typing import Any, Literal

import msgspec

from ostler.core.display import Display
from ostler.core.errors import Fault
from ostler.core.permission import Rule
from ostler.core.prompt import ImageContent

ToolKind = Literal["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "other"]
ToolReach = Literal["files", "commands", "anything"]
CallOrigin = Literal["model", "person", "protocol", "validation"]
ResultStatus = Literal["ok", "failed", "denied", "cancelled", "unknown"]


class ToolCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool call. Each layer of `rules` can only restrict what the policy allows; `raw` is the payload as received."""

    id: str
    tool: str
    arguments: dict[str, Any]
    origin: CallOrigin = "model"
    rules: tuple[tuple[Rule, ...], ...] = ()
    raw: str = ""


class ToolResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of a call: text for the model, a display for the user, and structured data."""

    call_id: str
    status: ResultStatus
    for_model: str
    for_human: Display = Display()
    data: Any = None
    images: tuple[ImageContent, ...] = ()
    fault: Fault | None = None


class ToolSpec(msgspec.Struct, frozen=True, omit_defaults=True):
    """The declaration of a tool for a model. `effects` is False if it cannot change anything outside the session.

    `reach` is what it changes: only files, through the workspace; what a command of the workspace can; or anything.
    """

    name: str
    kind: ToolKind
    description: str
    schema: dict[str, Any]
    effects: bool = True
    reach: ToolReach = "anything"


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
