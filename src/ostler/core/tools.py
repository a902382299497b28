"""Calls, results and the declaration of a tool."""

from typing import Any, Literal

import msgspec

from ostler.core.display import Display
from ostler.core.errors import Fault
from ostler.core.permission import Rule
from ostler.core.prompt import ImageContent

ToolKind = Literal["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "other"]
CallOrigin = Literal["model", "person", "protocol", "validation"]
ResultStatus = Literal["ok", "failed", "denied", "cancelled", "unknown"]


class ToolCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """A wish to act. `rules` may only narrow what the policy would allow; `raw` is the payload as it came."""

    id: str
    tool: str
    arguments: dict[str, Any]
    origin: CallOrigin = "model"
    rules: tuple[Rule, ...] = ()
    raw: str = ""


class ToolResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of a call, for three audiences: the model, the person, machines."""

    call_id: str
    status: ResultStatus
    for_model: str
    for_human: Display = Display()
    data: Any = None
    images: tuple[ImageContent, ...] = ()
    fault: Fault | None = None


class ToolSpec(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool as a model is told of it. `effects` says whether it can change anything outside the session."""

    name: str
    kind: ToolKind
    description: str
    schema: dict[str, Any]
    effects: bool = True


class Todo(msgspec.Struct, frozen=True, omit_defaults=True):
    """One step of a plan."""

    id: str
    content: str
    status: Literal["pending", "in_progress", "completed"] = "pending"
    priority: Literal["high", "medium", "low"] = "medium"


class ChildTask(msgspec.Struct, frozen=True, omit_defaults=True):
    """Work for a child session. `rules` only narrow the parent's."""

    id: str
    agent: str
    title: str
    prompt: str
    rules: tuple[Rule, ...] = ()
