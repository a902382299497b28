"""Edits that other vocabularies tell by line or by count, as replacements of a text that stands there once."""

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
    """insert (after a line counted from 0, -1 for the top), replace (the first), delete_range (lines from 0)."""
    words = {normalize_name(key): value for key, value in arguments.items()}
    action = normalize_name(str(words.pop("action", words.pop("operation", "replace"))))
    path = words.get("path")
    if action == "replace":
        return await _replace_first(path, words.get("old"), words.get("new"), 1, workspace)
    if action == "insert":
        line = _line_number(arguments, "insert_after", _INSERT_USAGE)
        text = words.get("new", words.get("content"))
        return "edit", await _replace_lines(path, line + 1, line + 1, text, workspace)
    if action in ("deleterange", "delete"):
        start, end = _line_number(arguments, "start", _DELETE_USAGE), _line_number(arguments, "end", _DELETE_USAGE)
        return "edit", await _replace_lines(path, start, end, "", workspace)
    raise ToolError(f"action is {action!r}; it can be insert, replace or delete_range", code="bad_arguments")


async def translate_replace_text(arguments: Arguments, workspace: Workspace) -> tuple[str, Arguments]:
    """The first places of a text, one unless told otherwise; none or fewer than one means all."""
    count = next((arguments.pop(key) for key in [key for key in arguments if normalize_name(key) == "count"]), 1)
    try:
        count = int(count)
    except (TypeError, ValueError, OverflowError):
        raise ToolError(f"count is {count!r}; give a number, 0 for every place", code="bad_arguments") from None
    if count <= 0 or arguments.get("replace_all"):
        return "edit", {**arguments, "replace_all": True}
    return await _replace_first(arguments.get("path"), arguments.get("old"), arguments.get("new"), count, workspace)


async def translate_text_editor(arguments: Arguments, workspace: Workspace) -> tuple[str, Arguments]:
    """One tool that views, creates, replaces and inserts, by its `command`."""
    words = {normalize_name(key): value for key, value in arguments.items()}
    command, path = normalize_name(str(words.pop("command", ""))), words.get("path")
    if command == "view":
        span = words.get("viewrange")
        return "read", {"path": path} if span is None else {"path": path, "view_range": span}
    if command == "create":
        return "write", {"path": path, "content": words.get("filetext", words.get("content", ""))}
    if command == "strreplace":
        return "edit", {"path": path, "old": words.get("old"), "new": words.get("new", "")}
    if command == "insert":
        line = _line_number(
            arguments, "insert_line", "insert takes insert_line (a line counted from 1, 0 for the top) and new_str"
        )
        text = words.get("new", words.get("inserttext"))
        return "edit", await _replace_lines(path, line, line, text, workspace)
    raise ToolError(f"command is {command!r}; it can be view, create, str_replace or insert", code="bad_arguments")


def convert_edit_item(item: Any) -> Any:
    """One of several edits, in our words and without the reason for it."""
    if not isinstance(item, dict):
        return item
    given = rename_arguments("edit", item)
    return {
        key: value for key, value in given.items() if normalize_name(key) not in IGNORED_ARGUMENTS and value is not None
    }


async def _replace_first(path: Any, old: Any, new: Any, count: int, workspace: Workspace) -> tuple[str, Arguments]:
    plain: Arguments = {key: value for key, value in (("path", path), ("old", old), ("new", new)) if value is not None}
    if not (isinstance(old, str) and isinstance(new, str) and old and isinstance(path, str)):
        return "edit", plain
    place = workspace.resolve(path)
    if not (place.in_workspace and place.exists):
        return "edit", plain
    text = (await workspace.read_for_edit(path)).text
    places = text.count(old)
    if places <= 1 or places <= count:
        return "edit", {**plain, "replace_all": True} if places > 1 else plain
    start, end = text.find(old), 0
    for _ in range(count):
        end = text.find(old, end) + len(old)
    return "edit", {"path": path, **_unique_replacement(text, start, end, text[start:end].replace(old, new))}


async def _replace_lines(path: Any, first: int, last: int, new: Any, workspace: Workspace) -> Arguments:
    """Lines, counted from 0, up to but not with the last, replaced by a text of whole lines."""
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
        asked = f"line {first}" if first == last else f"lines {first} to {last}"
        said = f"{asked}, counted from 0, is not in {place.display_path}, which has {lines} lines"
        raise ToolError(said, code="bad_arguments", hint="read it again, or edit by old and new text")
    text = _fit_line_endings(new, file, at_end=last == lines)
    return {"path": path, **_unique_replacement(file.text, starts[first], starts[last], text)}


def _line_starts(file: TextFile) -> list[int]:
    """Where each line begins, and the end of the text."""
    starts, at = [0], file.text.find("\n") + 1
    while at:
        starts.append(at)
        at = file.text.find("\n", at) + 1
    return starts if starts[-1] == len(file.text) else [*starts, len(file.text)]


def _fit_line_endings(new: str, file: TextFile, *, at_end: bool) -> str:
    """The text with line ends as the file has them, at its own end and between it and what is before it."""
    text = new.replace("\r\n", "\n")
    ended = not file.text or file.text.endswith("\n")
    if text and not text.endswith("\n") and (ended or not at_end):
        text += "\n"
    if text and at_end and not ended:
        text = "\n" + text.removesuffix("\n")
    return text.replace("\n", "\r\n") if file.newline == "\r\n" else text


def _unique_replacement(text: str, start: int, end: int, new: str) -> Arguments:
    """Old and new text for a span, with as much around it as makes it stand there once."""
    if not text:
        return {"old": "", "new": new}
    low, high, wider = start, end, 1
    while not _is_unique(text, low, high):
        for _ in range(wider):
            low = text.rfind("\n", 0, max(low - 1, 0)) + 1
            high = text.find("\n", high) + 1 or len(text)
        wider *= 2
    return {"old": text[low:high], "new": text[low:start] + new + text[end:high]}


def _is_unique(text: str, low: int, high: int) -> bool:
    if low == high:
        return False
    part = text[low:high]
    return text.find(part) == low and text.find(part, low + 1) < 0


def _line_number(arguments: Arguments, name: str, usage: str) -> int:
    """The number of a line; by another name it may be counted in another way, so that is refused."""
    value = next((value for key, value in arguments.items() if normalize_name(key) == normalize_name(name)), None)
    if isinstance(value, str) and re.fullmatch(r"\s*-?\d{1,9}\s*", value):
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    wrong = f"{name} is missing" if value is None else f"{name} is not a number"
    raise ToolError(f"{usage}; {wrong}, and there are: {', '.join(arguments)}"[:600], code="bad_arguments")
