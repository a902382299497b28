"""Plans as other vocabularies write them: other names, other states, or a checklist as text."""

import re
from typing import Any

from ostler.core.tool_aliases import normalize_name
from ostler.tools.repair_json import as_list

Arguments = dict[str, Any]


def convert_todowrite(arguments: Arguments, called_as: str) -> Arguments:
    """Items by other names and states, or a checklist as text."""
    todos = as_list(arguments.get("todos"))
    if isinstance(todos, str):
        todos = [_parse_checklist_line(line) for line in todos.splitlines() if line.strip()]
    if isinstance(todos, list):
        arguments["todos"] = [_convert_todo(item) for item in todos]
    return {key: value for key, value in arguments.items() if key != "merge"}


_CHECKLIST_ITEM = re.compile(r"(?s)\s*(?:[-*+]|\d+[.)])?\s*(?:\[(.)\])?\s*(.*)")
_STATUS_ALIASES = {
    "done": "completed",
    "complete": "completed",
    "finished": "completed",
    "x": "completed",
    "doing": "in_progress",
    "active": "in_progress",
    "inprogress": "in_progress",
    "started": "in_progress",
    "current": "in_progress",
    "todo": "pending",
    "open": "pending",
    "notstarted": "pending",
    "waiting": "pending",
}


def _parse_checklist_line(line: str) -> Arguments:
    found = _CHECKLIST_ITEM.fullmatch(line)
    mark, text = (found[1] or " ", found[2]) if found else (" ", line)
    return {"content": text, "status": {"x": "completed", "X": "completed", " ": "pending"}.get(mark, "in_progress")}


def _convert_todo(item: Any) -> Any:
    if isinstance(item, str):
        return _parse_checklist_line(item)
    if not isinstance(item, dict):
        return item
    given = {
        key if key in _TODO_KEYS else _KEY_ALIASES.get(normalize_name(key), key): value for key, value in item.items()
    }
    if "status" not in given and any(item.get(mark) is True for mark in ("done", "completed", "checked")):
        given["status"] = "completed"
    given = {key: value for key, value in given.items() if key in _TODO_KEYS and value is not None}
    if isinstance(given.get("status"), str):
        given["status"] = _STATUS_ALIASES.get(normalize_name(given["status"]), given["status"])
    if isinstance(given.get("id"), int):
        given["id"] = str(given["id"])
    return given


_KEY_ALIASES = {
    **dict.fromkeys(("text", "task", "title", "step", "description", "item", "todo", "name"), "content"),
    **dict.fromkeys(("state", "progress"), "status"),
}
_TODO_KEYS = ("id", "content", "status", "priority")
