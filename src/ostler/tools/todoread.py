"""The tool that reads the plan of the session."""

import msgspec

from ostler.tools.declared import Declared
from ostler.tools.todowrite import plan_result
from ostler.vocabulary.events import TodosChanged
from ostler.vocabulary.permission import Need, Permission
from ostler.vocabulary.seams import Ground, ToolContext
from ostler.vocabulary.tools import ToolResult


class TodoReadParams(msgspec.Struct):
    pass


class TodoRead(Declared[TodoReadParams]):
    name = "todoread"
    kind = "think"
    effects = False
    params = TodoReadParams

    async def permission(self, params: TodoReadParams, ground: Ground) -> Permission:
        return Permission("read the plan", (Need("todoread", "*"),))

    async def run(self, params: TodoReadParams, context: ToolContext) -> ToolResult:
        changes = (event.items for event in reversed(context.past()) if isinstance(event, TodosChanged))
        return plan_result(next(changes, ()))
