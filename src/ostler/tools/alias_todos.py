"""Plans as other vocabularies write them: other names, other states, or a checklist as text."""

import re
from typing import Any

from ostler.tools.repair_json import as_list
from ostler.vocabulary.tool_names import fold

Given = dict[str, Any]


def todowrite(given: Given, called: str) -> Given:
    """Items by other names and states, or a checklist as text."""
    todos = as_list(given.get("todos"))
    if isinstance(todos, str):
        todos = [_checked(line) for line in todos.splitlines() if line.strip()]
    if isinstance(todos, list):
        given["todos"] = [_todo(item) for item in todos]
    return {key: value for key, value in given.items() if key != "merge"}


_ITEM = re.compile(r"(?s)\s*(?:[-*+]|\d+[.)])?\s*(?:\[(.)\])?\s*(.*)")
_STATES = {
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


def _checked(line: str) -> Given:
    found = _ITEM.fullmatch(line)
    mark, text = (found[1] or " ", found[2]) if found else (" ", line)
    return {"content": text, "status": {"x": "completed", "X": "completed", " ": "pending"}.get(mark, "in_progress")}


def _todo(item: Any) -> Any:
    if isinstance(item, str):
        return _checked(item)
    if not isinstance(item, dict):
        return item
    given = {key if key in _TODO else _SAME.get(fold(key), key): value for key, value in item.items()}
    if "status" not in given and any(item.get(mark) is True for mark in ("done", "completed", "checked")):
        given["status"] = "completed"
    given = {key: value for key, value in given.items() if key in _TODO and value is not None}
    if isinstance(given.get("status"), str):
        given["status"] = _STATES.get(fold(given["status"]), given["status"])
    if isinstance(given.get("id"), int):
        given["id"] = str(given["id"])
    return given


_SAME = {
    **dict.fromkeys(("text", "task", "title", "step", "description", "item", "todo", "name"), "content"),
    **dict.fromkeys(("state", "progress"), "status"),
}
_TODO = ("id", "content", "status", "priority")
