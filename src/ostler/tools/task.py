"""Tool that delegates a task to a subagent session."""

from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Annotated

import msgspec

from ostler.core.display import Display
from ostler.core.permission import Need, Permission
from ostler.core.protocols import ToolContext, Workspace
from ostler.core.tools import ChildTask, ToolResult, ToolSpec
from ostler.tools.base_tool import BaseTool


class TaskParams(msgspec.Struct):
    prompt: Annotated[str, msgspec.Meta(min_length=1)]
    title: Annotated[str, msgspec.Meta(description="the task in a few words")] = ""
    agent: Annotated[str, msgspec.Meta(description="the subagent")] = "general"


class TaskTool(BaseTool[TaskParams]):
    name = "task"
    params = TaskParams

    def __init__(self, agents: Mapping[str, str] = MappingProxyType({})) -> None:
        """`agents` maps the available subagents to their descriptions."""
        self._agents = agents

    @cached_property
    def spec(self) -> ToolSpec:
        spec = super().spec
        lines = [f"- {name}: {description}" for name, description in self._agents.items()]
        text = "\n".join([spec.description, "Agents:", *lines]) if lines else spec.description
        return msgspec.structs.replace(spec, description=text)

    async def permission(self, params: TaskParams, workspace: Workspace) -> Permission:
        title = _title(params)
        need = Need("task", params.agent, rule_pattern=params.agent)
        return Permission(f"delegate to {params.agent}: {title}", (need,), Display(title))

    async def run(self, params: TaskParams, context: ToolContext) -> ToolResult:
        return await context.spawn(ChildTask(context.call_id, params.agent, _title(params), params.prompt))


def _title(params: TaskParams) -> str:
    return params.title or params.prompt.strip().partition("\n")[0][:80]
