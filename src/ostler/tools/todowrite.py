"""Tool that replaces the session's todo list."""

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
    runs_in = "session"
    params = TodoWriteParams

    async def permission(self, params: TodoWriteParams, workspace: Workspace) -> Permission:
        return Permission("update the todo list", (Need("todowrite", "*"),))

    async def run(self, params: TodoWriteParams, context: ToolContext) -> ToolResult:
        items = _validate_items(params.todos)
        context.persist(TodosChanged(items))
        return plan_result(items)


def _validate_items(todos: Sequence[TodoInput]) -> tuple[Todo, ...]:
    """Return the items, with their position as id if they have none. Raises `ToolError` if they are invalid."""
    items = tuple(
        Todo(todo.id or str(position), _to_single_line(todo.content), todo.status, todo.priority)
        for position, todo in enumerate(todos, 1)
    )
    if len(items) > MAX_ITEMS:
        raise ToolError(f"{len(items)} items are too many; use at most {MAX_ITEMS}", code="bad_arguments")
    empty = next((position for position, item in enumerate(items, 1) if not item.content), 0)
    if empty:
        raise ToolError(f"item {empty} has no content; describe the task", code="bad_arguments")
    duplicates = [name for name, count in Counter(item.id for item in items).items() if count > 1]
    if duplicates:
        raise ToolError(f"two items have the id {duplicates[0]!r}; give each its own, or none", code="bad_arguments")
    in_progress = [item.id for item in items if item.status == "in_progress"]
    if len(in_progress) > 1:
        message = f"items {' and '.join(in_progress)} are both in_progress; work on one at a time"
        raise ToolError(message, code="bad_arguments")
    return items


def _to_single_line(content: str) -> str:
    """Return the content on one line, truncated if it is too long."""
    line = " ".join(content.split())
    return line if len(line) <= MAX_ITEM_LENGTH else f"{line[: MAX_ITEM_LENGTH - 1]}…"


def plan_result(items: Sequence[Todo]) -> ToolResult:
    """Return a todo list as a tool result."""
    states = Counter(item.status for item in items)
    counts = {"total": len(items), "completed": states["completed"], "inProgress": states["in_progress"]}
    summary = f"{states['completed']} of {len(items)} done" if items else "no todos"
    text = "\n".join(f"{TODO_MARKS[item.status]} {item.id}. {item.content}" for item in items)
    checklist = DisplayChecklist(tuple((item.status, item.content) for item in items))
    current = next((item.content for item in items if item.status == "in_progress"), "")
    data: dict[str, Any] = {
        "count": len(items),
        "items": [{"id": i.id, "content": i.content, "status": i.status, "priority": i.priority} for i in items],
        "in_progress": current,
        "stats": counts,
    }
    return ToolResult(
        "", "ok", text or "The todo list is empty.", Display(summary, (checklist,) if items else ()), data
    )
