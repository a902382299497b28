"""Edits that other vocabularies tell by line or by count, as replacements of a text that stands there once."""

import re
from typing import Any

from ostler.tools.aliases import COMMENTARY, renamed
from ostler.vocabulary.errors import ToolFailure
from ostler.vocabulary.seams import Ground, TextFile
from ostler.vocabulary.tool_names import fold

Given = dict[str, Any]
_INSERT = "insert takes insert_after (a line counted from 0, -1 for the top) and new_text"
_INSERT_LINE = "insert takes insert_line (a line counted from 1, 0 for the top) and new_str"
_DELETE = "delete_range takes start and end (lines counted from 0, end not included)"


async def edit_text(given: Given, ground: Ground) -> tuple[str, Given]:
    """insert (after a line counted from 0, -1 for the top), replace (the first), delete_range (lines from 0)."""
    words = {fold(key): value for key, value in given.items()}
    action = fold(str(words.pop("action", words.pop("operation", "replace"))))
    path = words.get("path")
    if action == "replace":
        return await _first_places(path, words.get("old"), words.get("new"), 1, ground)
    if action == "insert":
        line = _line(given, "insert_after", _INSERT)
        text = words.get("new", words.get("content"))
        return "edit", await _at_lines(path, line + 1, line + 1, text, ground)
    if action in ("deleterange", "delete"):
        start, end = _line(given, "start", _DELETE), _line(given, "end", _DELETE)
        return "edit", await _at_lines(path, start, end, "", ground)
    raise ToolFailure(f"action is {action!r}; it can be insert, replace or delete_range", code="bad_arguments")


async def replace_text(given: Given, ground: Ground) -> tuple[str, Given]:
    """The first places of a text, one unless told otherwise; none or fewer than one means all."""
    count = next((given.pop(key) for key in [key for key in given if fold(key) == "count"]), 1)
    try:
        count = int(count)
    except (TypeError, ValueError, OverflowError):
        raise ToolFailure(f"count is {count!r}; give a number, 0 for every place", code="bad_arguments") from None
    if count <= 0 or given.get("replace_all"):
        return "edit", {**given, "replace_all": True}
    return await _first_places(given.get("path"), given.get("old"), given.get("new"), count, ground)


async def text_editor(given: Given, ground: Ground) -> tuple[str, Given]:
    """One tool that views, creates, replaces and inserts, by its `command`."""
    words = {fold(key): value for key, value in given.items()}
    command, path = fold(str(words.pop("command", ""))), words.get("path")
    if command == "view":
        span = words.get("viewrange")
        return "read", {"path": path} if span is None else {"path": path, "view_range": span}
    if command == "create":
        return "write", {"path": path, "content": words.get("filetext", words.get("content", ""))}
    if command == "strreplace":
        return "edit", {"path": path, "old": words.get("old"), "new": words.get("new", "")}
    if command == "insert":
        line = _line(
            given, "insert_line", "insert takes insert_line (a line counted from 1, 0 for the top) and new_str"
        )
        text = words.get("new", words.get("inserttext"))
        return "edit", await _at_lines(path, line, line, text, ground)
    raise ToolFailure(f"command is {command!r}; it can be view, create, str_replace or insert", code="bad_arguments")


def edits_of(item: Any) -> Any:
    """One of several edits, in our words and without the reason for it."""
    if not isinstance(item, dict):
        return item
    given = renamed("edit", item)
    return {key: value for key, value in given.items() if fold(key) not in COMMENTARY and value is not None}


async def _first_places(path: Any, old: Any, new: Any, count: int, ground: Ground) -> tuple[str, Given]:
    plain: Given = {key: value for key, value in (("path", path), ("old", old), ("new", new)) if value is not None}
    if not (isinstance(old, str) and isinstance(new, str) and old and isinstance(path, str)):
        return "edit", plain
    place = ground.place(path)
    if not (place.inside and place.exists):
        return "edit", plain
    text = (await ground.read_to_change(path)).text
    places = text.count(old)
    if places <= 1 or places <= count:
        return "edit", {**plain, "replace_all": True} if places > 1 else plain
    start, end = text.find(old), 0
    for _ in range(count):
        end = text.find(old, end) + len(old)
    return "edit", {"path": path, **_replacing(text, start, end, text[start:end].replace(old, new))}


async def _at_lines(path: Any, first: int, last: int, new: Any, ground: Ground) -> Given:
    """Lines, counted from 0, up to but not with the last, replaced by a text of whole lines."""
    if not isinstance(path, str) or not isinstance(new, str):
        missing = "the new text" if isinstance(path, str) else "path"
        raise ToolFailure(f"{missing} is missing; give it as a text", code="bad_arguments")
    place = ground.place(path)
    if not place.inside or not place.exists:
        return {"path": path, "old": "", "new": new}
    file = await ground.read_to_change(path)
    starts = _starts(file)
    lines = len(starts) - 1
    if not 0 <= first <= last <= lines:
        asked = f"line {first}" if first == last else f"lines {first} to {last}"
        said = f"{asked}, counted from 0, is not in {place.shown}, which has {lines} lines"
        raise ToolFailure(said, code="bad_arguments", hint="read it again, or edit by old and new text")
    text = _in_form(new, file, at_end=last == lines)
    return {"path": path, **_replacing(file.text, starts[first], starts[last], text)}


def _starts(file: TextFile) -> list[int]:
    """Where each line begins, and the end of the text."""
    starts, at = [0], file.text.find("\n") + 1
    while at:
        starts.append(at)
        at = file.text.find("\n", at) + 1
    return starts if starts[-1] == len(file.text) else [*starts, len(file.text)]


def _in_form(new: str, file: TextFile, *, at_end: bool) -> str:
    """The text with line ends as the file has them, at its own end and between it and what is before it."""
    text = new.replace("\r\n", "\n")
    ended = not file.text or file.text.endswith("\n")
    if text and not text.endswith("\n") and (ended or not at_end):
        text += "\n"
    if text and at_end and not ended:
        text = "\n" + text.removesuffix("\n")
    return text.replace("\n", "\r\n") if file.newline == "\r\n" else text


def _replacing(text: str, start: int, end: int, new: str) -> Given:
    """Old and new text for a span, with as much around it as makes it stand there once."""
    if not text:
        return {"old": "", "new": new}
    low, high, wider = start, end, 1
    while not _stands_once(text, low, high):
        for _ in range(wider):
            low = text.rfind("\n", 0, max(low - 1, 0)) + 1
            high = text.find("\n", high) + 1 or len(text)
        wider *= 2
    return {"old": text[low:high], "new": text[low:start] + new + text[end:high]}


def _stands_once(text: str, low: int, high: int) -> bool:
    if low == high:
        return False
    part = text[low:high]
    return text.find(part) == low and text.find(part, low + 1) < 0


def _line(given: Given, name: str, takes: str) -> int:
    """The number of a line; by another name it may be counted in another way, so that is refused."""
    value = next((value for key, value in given.items() if fold(key) == fold(name)), None)
    if isinstance(value, str) and re.fullmatch(r"\s*-?\d{1,9}\s*", value):
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    wrong = f"{name} is missing" if value is None else f"{name} is not a number"
    raise ToolFailure(f"{takes}; {wrong}, and there are: {', '.join(given)}"[:600], code="bad_arguments")
