"""Converts tool calls, previews and results to ACP titles, locations and content."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ostler.core.display import Display, DisplayBlock, DisplayChecklist, DisplayDiff, DisplayFields, DisplayText
from ostler.core.tools import ToolCall, ToolResult
from ostler.text.sanitise import escape_invisible, escape_to_one_line
from ostler.wire.acp import ToolCallContent, ToolCallLocation, text_content

MAX_TITLE_LENGTH = 200
CHECKBOXES = {"pending": "[ ]", "in_progress": "[~]", "completed": "[x]"}
STATUSES = {"ok": "completed"}
_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_MAX_LINE_NUMBER = 2**32 - 1
_SUBJECT_ARGUMENTS = ("path", "pattern", "query", "title", "name", "url", "ref")


def title_of(call: ToolCall) -> str:
    """Return a one-line title: the command itself, or the tool and its subject."""
    arguments = call.arguments
    command = arguments.get("command")
    if isinstance(command, str) and command:
        return _title_line(command)
    subject = next(
        (value for name in _SUBJECT_ARGUMENTS if isinstance(value := arguments.get(name), str) and value), ""
    )
    return _title_line(f"{call.tool} {subject}".strip())


def locations_of(arguments: Mapping[str, Any], display: Display, cwd: str) -> tuple[ToolCallLocation, ...]:
    """Return the files of a call: the one it names, then those it changes, at their first change."""
    found: dict[str, ToolCallLocation] = {}
    path, line = arguments.get("path"), arguments.get("line")
    if isinstance(path, str) and path:
        absolute = os.path.normpath(os.path.join(cwd, path))
        found[absolute] = ToolCallLocation(absolute, line if _is_line_number(line) else None)
    for block in display.blocks:
        if isinstance(block, DisplayDiff):
            absolute = os.path.normpath(os.path.join(cwd, block.path))
            found[absolute] = ToolCallLocation(absolute, _first_line(block.diff))
    return tuple(found.values())


def contents_of(display: Display, cwd: str) -> tuple[ToolCallContent, ...]:
    """Convert the blocks of a display; without blocks, its summary."""
    contents = [content for block in display.blocks for content in _block_contents(block, cwd)]
    if not contents and display.summary:
        contents = [_text(display.summary)]
    return tuple(contents)


def result_contents(result: ToolResult, cwd: str) -> tuple[ToolCallContent, ...]:
    """Convert a result; a failed one starts with its summary."""
    contents = contents_of(result.for_human, cwd)
    summary = result.for_human.summary
    if result.status != "ok" and summary and result.for_human.blocks:
        return (_text(summary), *contents)
    return contents


def status_of(result: ToolResult) -> str:
    """Return `completed` or `failed`, the only final states of the protocol."""
    return STATUSES.get(result.status, "failed")


def _block_contents(block: DisplayBlock, cwd: str) -> Iterator[ToolCallContent]:
    match block:
        case DisplayDiff():
            yield from _diff_contents(block, os.path.normpath(os.path.join(cwd, block.path)))
        case DisplayText(text, kind):
            yield _text(_fence_text(text) if kind == "output" else text)
        case DisplayChecklist(items):
            yield _text("\n".join(f"- {CHECKBOXES[status]} {text}" for status, text in items))
        case DisplayFields(pairs):
            yield _text("\n".join(f"- {name}: {escape_invisible(value)}" for name, value in pairs))


def _diff_contents(block: DisplayDiff, path: str) -> Iterator[ToolCallContent]:
    """Convert each hunk to a diff with old and new text, because the protocol has no hunks."""
    for before, after in hunk_sides(block.diff):
        yield ToolCallContent(
            "diff", path=path, old_text=None if block.operation == "created" else before, new_text=after
        )
    if block.truncated or not block.diff:
        yield _text(f"{block.operation}, {block.additions} lines added, {block.deletions} removed")


def hunk_sides(diff: str) -> list[tuple[str, str]]:
    """Return the text before and after each hunk of a unified diff."""
    found: list[tuple[list[str], list[str]]] = []
    last: tuple[list[str], ...] = ()
    for line in diff.split("\n"):
        if _HUNK.match(line):
            found.append(([], []))
            last = ()
        elif found and line[:1] in (" ", "-", "+"):
            before, after = found[-1]
            last = {" ": (before, after), "-": (before,), "+": (after,)}[line[0]]
            for side in last:
                side.append(f"{line[1:]}\n")
        elif line.startswith("\\"):
            for side in last:
                side[-1] = side[-1][:-1]
    return [("".join(before), "".join(after)) for before, after in found]


def _first_line(diff: str) -> int | None:
    """Return the line of the first change; a hunk starts some lines before it."""
    hunk = _HUNK.search(diff)
    if not hunk:
        return None
    body = diff[hunk.end() :].split("\n")[1:]
    unchanged = next((number for number, line in enumerate(body) if line[:1] != " "), 0)
    return max(int(hunk[2]) + unchanged, 1)


def _is_line_number(value: Any) -> bool:
    """Return whether a value from the model is a valid line number in the protocol."""
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= _MAX_LINE_NUMBER


def _fence_text(text: str) -> str:
    """Put output into a code fence that is longer than any run of backticks in it."""
    ticks = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, ticks + 1)
    return f"{fence}\n{text.rstrip()}\n{fence}"


def fence_lines(lines: Sequence[str], language: str = "") -> str:
    """Put lines into a code fence, so that columns stay aligned."""
    text = _fence_text("\n".join(lines))
    return text.replace("\n", f"{language}\n", 1) if language else text


def _text(text: str) -> ToolCallContent:
    return ToolCallContent("content", text_content(text))


def _title_line(text: str) -> str:
    line = escape_to_one_line(text)
    return line if len(line) <= MAX_TITLE_LENGTH else f"{line[: MAX_TITLE_LENGTH - 1]}…"
