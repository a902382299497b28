"""Translates todo lists of other agents' tools."""

import re
from typing import Any

from ostler.core.tool_aliases import normalize_name
from ostler.tools.repair_json import as_list

Arguments = dict[str, Any]


def convert_todowrite(arguments: Arguments, called_as: str) -> Arguments:
    """Convert items with other key or status names, or a checklist as text."""
    todos = as_list(arguments.get("todos"))
    if isinstance(todos, str):
        todos = [_parse_checklist_line(line) for line in todos.splitlines() if line.strip()]
    if isinstance(todos, list):
        arguments["todos"] = [_convert_todo(item) for item in todos]
    return {key: value for key, value in arguments.items() if key != "merge"}


_CHECKLIST_ITEM = re.compile(r"(?s)\s*(?:[-*+]|\d+[.)])?\s*(?:\[(.)\])?\s*(.*)")
_STATUS_ALIASES = {
    **dict.fromkeys(("done", "complete", "finished", "x"), "completed"),
    **dict.fromkeys(("doing", "active", "inprogress", "started", "current"), "in_progress"),
    **dict.fromkeys(("todo", "open", "notstarted", "waiting"), "pending"),
}


def _parse_checklist_line(line: str) -> Arguments:
    match = _CHECKLIST_ITEM.fullmatch(line)
    mark, text = (match[1] or " ", match[2]) if match else (" ", line)
    return {"content": text, "status": {"x": "completed", "X": "completed", " ": "pending"}.get(mark, "in_progress")}


def _convert_todo(item: Any) -> Any:
    if isinstance(item, str):
        return _parse_checklist_line(item)
    if not isinstance(item, dict):
        return item
    todo = {
        key if key in _TODO_KEYS else _KEY_ALIASES.get(normalize_name(key), key): value for key, value in item.items()
    }
    if "status" not in todo and any(item.get(mark) is True for mark in ("done", "completed", "checked")):
        todo["status"] = "completed"
    todo = {key: value for key, value in todo.items() if key in _TODO_KEYS and value is not None}
    if isinstance(todo.get("status"), str):
        todo["status"] = _STATUS_ALIASES.get(normalize_name(todo["status"]), todo["status"])
    if isinstance(todo.get("id"), int):
        todo["id"] = str(todo["id"])
    return todo


_KEY_ALIASES = {
    **dict.fromkeys(("text", "task", "title", "step", "description", "item", "todo", "name"), "content"),
    **dict.fromkeys(("state", "progress"), "status"),
}
_TODO_KEYS = ("id", "content", "status", "priority")
