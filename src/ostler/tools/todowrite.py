"""The tool that keeps the plan of the session, whole and anew each time."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from ostler.core.display import Display, DisplayChecklist
from ostler.core.errors import ToolError
from ostler.core.events import TodosChanged
from ostler.core.permission import Need, Permission
from ostler.core.protocols import ToolContext, Workspace
from ostler.core.tools import Todo, ToolResult
from ostler.tools.base_tool import BaseTool

MAX_ITEMS = 100
MAX_ITEM_LENGTH = 500
TODO_MARKS = {"pending": "[ ]", "in_progress": "[~]", "completed": "[x]"}


class TodoInput(msgspec.Struct):
    content: str
    status: Literal["pending", "in_progress", "completed"] = "pending"
    priority: Literal["high", "medium", "low"] = "medium"
    id: str = ""


class TodoWriteParams(msgspec.Struct):
    todos: list[TodoInput]


class TodoWriteTool(BaseTool[TodoWriteParams]):
    name = "todowrite"
    kind = "think"
    effects = False
    params = TodoWriteParams

    async def permission(self, params: TodoWriteParams, workspace: Workspace) -> Permission:
        return Permission("change the plan", (Need("todowrite", "*"),))

    async def run(self, params: TodoWriteParams, context: ToolContext) -> ToolResult:
        items = _validate_items(params.todos)
        context.persist(TodosChanged(items))
        return plan_result(items)


def _validate_items(todos: Sequence[TodoInput]) -> tuple[Todo, ...]:
    """The items with ids, their places where they have none; refused when they are no plan."""
    items = tuple(
        Todo(one.id or str(place), _to_single_line(one.content), one.status, one.priority)
        for place, one in enumerate(todos, 1)
    )
    if len(items) > MAX_ITEMS:
        raise ToolError(f"a plan of {len(items)} items is too long; keep it under {MAX_ITEMS}", code="bad_arguments")
    empty = next((place for place, item in enumerate(items, 1) if not item.content), 0)
    if empty:
        raise ToolError(f"item {empty} has no content; say what is to be done", code="bad_arguments")
    twice = [name for name, count in Counter(item.id for item in items).items() if count > 1]
    if twice:
        raise ToolError(f"two items have the id {twice[0]!r}; give each its own, or none", code="bad_arguments")
    busy = [item.id for item in items if item.status == "in_progress"]
    if len(busy) > 1:
        said = f"items {' and '.join(busy)} are both in_progress; work on one at a time"
        raise ToolError(said, code="bad_arguments")
    return items


def _to_single_line(content: str) -> str:
    """An item is one line of a list that the model is shown again and again."""
    line = " ".join(content.split())
    return line if len(line) <= MAX_ITEM_LENGTH else f"{line[: MAX_ITEM_LENGTH - 1]}…"


def plan_result(items: Sequence[Todo]) -> ToolResult:
    """A plan as all three audiences see it."""
    states = Counter(item.status for item in items)
    counts = {"total": len(items), "completed": states["completed"], "inProgress": states["in_progress"]}
    summary = f"{states['completed']} of {len(items)} done" if items else "no plan"
    drawn = "\n".join(f"{TODO_MARKS[item.status]} {item.id}. {item.content}" for item in items)
    shown = DisplayChecklist(tuple((item.status, item.content) for item in items))
    busy = next((item.content for item in items if item.status == "in_progress"), "")
    data: dict[str, Any] = {
        "count": len(items),
        "items": [{"id": i.id, "content": i.content, "status": i.status, "priority": i.priority} for i in items],
        "in_progress": busy,
        "stats": counts,
    }
    return ToolResult("", "ok", drawn or "There is no plan.", Display(summary, (shown,) if items else ()), data)
