"""Translates line- and count-based edits of other agents' tools into text replacements."""

import re
from typing import Any

from ostler.core.errors import ToolError
from ostler.core.protocols import TextFile, Workspace
from ostler.core.tool_aliases import normalize_name
from ostler.tools.aliases import IGNORED_ARGUMENTS, rename_arguments

Arguments = dict[str, Any]
_INSERT_USAGE = "insert takes insert_after (a line counted from 0, -1 for the top) and new_text"
_INSERT_LINE_USAGE = "insert takes insert_line (a line counted from 1, 0 for the top) and new_str"
_DELETE_USAGE = "delete_range takes start and end (lines counted from 0, end not included)"


async def translate_edit_text(arguments: Arguments, workspace: Workspace) -> tuple[str, Arguments]:
    """Translate insert (after a line from 0, -1 for the top), replace (first match) and delete_range (lines from 0)."""
    normalized = {normalize_name(key): value for key, value in arguments.items()}
    action = normalize_name(str(normalized.pop("action", normalized.pop("operation", "replace"))))
    path = normalized.get("path")
    if action == "replace":
        return await _replace_first(path, normalized.get("old"), normalized.get("new"), 1, workspace)
    if action == "insert":
        line = _line_number(arguments, "insert_after", _INSERT_USAGE)
        text = normalized.get("new", normalized.get("content"))
        return "edit", await _replace_lines(path, line + 1, line + 1, text, workspace)
    if action in ("deleterange", "delete"):
        start, end = _line_number(arguments, "start", _DELETE_USAGE), _line_number(arguments, "end", _DELETE_USAGE)
        return "edit", await _replace_lines(path, start, end, "", workspace)
    raise ToolError(f"action is {action!r}; it can be insert, replace or delete_range", code="bad_arguments")


async def translate_replace_text(arguments: Arguments, workspace: Workspace) -> tuple[str, Arguments]:
    """Translate a replacement of the first `count` matches (default 1); a count below 1 means all."""
    count = next((arguments.pop(key) for key in [key for key in arguments if normalize_name(key) == "count"]), 1)
    try:
        count = int(count)
    except (TypeError, ValueError, OverflowError):
        raise ToolError(f"count is {count!r}; give a number, 0 to replace all", code="bad_arguments") from None
    if count <= 0 or arguments.get("replace_all"):
        return "edit", {**arguments, "replace_all": True}
    return await _replace_first(arguments.get("path"), arguments.get("old"), arguments.get("new"), count, workspace)


async def translate_text_editor(arguments: Arguments, workspace: Workspace) -> tuple[str, Arguments]:
    """Translate the text editor tool, which views, creates, replaces or inserts depending on `command`."""
    normalized = {normalize_name(key): value for key, value in arguments.items()}
    command, path = normalize_name(str(normalized.pop("command", ""))), normalized.get("path")
    if command == "view":
        view_range = normalized.get("viewrange")
        return "read", {"path": path} if view_range is None else {"path": path, "view_range": view_range}
    if command == "create":
        return "write", {"path": path, "content": normalized.get("filetext", normalized.get("content", ""))}
    if command == "strreplace":
        return "edit", {"path": path, "old": normalized.get("old"), "new": normalized.get("new", "")}
    if command == "insert":
        line = _line_number(arguments, "insert_line", _INSERT_LINE_USAGE)
        text = normalized.get("new", normalized.get("inserttext"))
        return "edit", await _replace_lines(path, line, line, text, workspace)
    raise ToolError(f"command is {command!r}; it can be view, create, str_replace or insert", code="bad_arguments")


def convert_edit_item(item: Any) -> Any:
    """Rename the arguments of one edit in a list, and drop those that are ignored."""
    if not isinstance(item, dict):
        return item
    renamed = rename_arguments("edit", item)
    return {
        key: value
        for key, value in renamed.items()
        if normalize_name(key) not in IGNORED_ARGUMENTS and value is not None
    }


async def _replace_first(path: Any, old: Any, new: Any, count: int, workspace: Workspace) -> tuple[str, Arguments]:
    plain: Arguments = {key: value for key, value in (("path", path), ("old", old), ("new", new)) if value is not None}
    if not (isinstance(old, str) and isinstance(new, str) and old and isinstance(path, str)):
        return "edit", plain
    place = workspace.resolve(path)
    if not (place.in_workspace and place.exists):
        return "edit", plain
    text = (await workspace.read_for_edit(path)).text
    occurrences = text.count(old)
    if occurrences <= 1 or occurrences <= count:
        return "edit", {**plain, "replace_all": True} if occurrences > 1 else plain
    start, end = text.find(old), 0
    for _ in range(count):
        end = text.find(old, end) + len(old)
    return "edit", {"path": path, **_unique_replacement(text, start, end, text[start:end].replace(old, new))}


async def _replace_lines(path: Any, first: int, last: int, new: Any, workspace: Workspace) -> Arguments:
    """Return an edit that replaces the lines `first` to `last` (from 0, exclusive) with complete lines."""
    if not isinstance(path, str) or not isinstance(new, str):
        missing = "the new text" if isinstance(path, str) else "path"
        raise ToolError(f"{missing} is missing; give it as a text", code="bad_arguments")
    place = workspace.resolve(path)
    if not place.in_workspace or not place.exists:
        return {"path": path, "old": "", "new": new}
    file = await workspace.read_for_edit(path)
    starts = _line_starts(file)
    lines = len(starts) - 1
    if not 0 <= first <= last <= lines:
        requested = f"line {first}" if first == last else f"lines {first} to {last}"
        message = f"{requested}, counted from 0, is not in {place.display_path}, which has {lines} lines"
        raise ToolError(message, code="bad_arguments", hint="read it again, or edit by old and new text")
    text = _fit_line_endings(new, file, at_end=last == lines)
    return {"path": path, **_unique_replacement(file.text, starts[first], starts[last], text)}


def _line_starts(file: TextFile) -> list[int]:
    """Return the offset of each line, and the end of the text."""
    starts, offset = [0], file.text.find("\n") + 1
    while offset:
        starts.append(offset)
        offset = file.text.find("\n", offset) + 1
    return starts if starts[-1] == len(file.text) else [*starts, len(file.text)]


def _fit_line_endings(new: str, file: TextFile, *, at_end: bool) -> str:
    """Return the text with the file's line endings, also at its end and before its first line."""
    text = new.replace("\r\n", "\n")
    ends_with_newline = not file.text or file.text.endswith("\n")
    if text and not text.endswith("\n") and (ends_with_newline or not at_end):
        text += "\n"
    if text and at_end and not ends_with_newline:
        text = "\n" + text.removesuffix("\n")
    return text.replace("\n", "\r\n") if file.newline == "\r\n" else text


def _unique_replacement(text: str, start: int, end: int, new: str) -> Arguments:
    """Return old and new text for a span, with enough surrounding lines to be unique."""
    if not text:
        return {"old": "", "new": new}
    low, high, lines = start, end, 1
    while not _is_unique(text, low, high):
        for _ in range(lines):
            low = text.rfind("\n", 0, max(low - 1, 0)) + 1
            high = text.find("\n", high) + 1 or len(text)
        lines *= 2
    return {"old": text[low:high], "new": text[low:start] + new + text[end:high]}


def _is_unique(text: str, low: int, high: int) -> bool:
    if low == high:
        return False
    part = text[low:high]
    return text.find(part) == low and text.find(part, low + 1) < 0


def _line_number(arguments: Arguments, name: str, usage: str) -> int:
    """Return the line number in an argument.

    Only this name is accepted, because other names may count differently.
    """
    value = next((value for key, value in arguments.items() if normalize_name(key) == normalize_name(name)), None)
    if isinstance(value, str) and re.fullmatch(r"\s*-?\d{1,9}\s*", value):
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    wrong = f"{name} is missing" if value is None else f"{name} is not a number"
    raise ToolError(f"{usage}; {wrong}; the arguments are: {', '.join(arguments)}"[:600], code="bad_arguments")
