"""Tool that reads the session's todo list."""

import msgspec

from ostler.core.events import TodosChanged
from ostler.core.permission import Need, Permission
from ostler.core.protocols import ToolContext, Workspace
from ostler.core.tools import ToolResult
from ostler.tools.base_tool import BaseTool
from ostler.tools.todowrite import plan_result


class TodoReadParams(msgspec.Struct):
    pass


class TodoReadTool(BaseTool[TodoReadParams]):
    name = "todoread"
    kind = "think"
    effects = False
    runs_in = "session"
    params = TodoReadParams

    async def permission(self, params: TodoReadParams, workspace: Workspace) -> Permission:
        return Permission("read the todo list", (Need("todoread", "*"),))

    async def run(self, params: TodoReadParams, context: ToolContext) -> ToolResult:
        changes = (event.items for event in reversed(context.events()) if isinstance(event, TodosChanged))
        return plan_result(next(changes, ()))
