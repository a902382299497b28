"""How a tool call of ours looks in an editor: its title, its places, its changes, its output."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ostler.core.display import Display, DisplayBlock, DisplayChecklist, DisplayDiff, DisplayFields, DisplayText
from ostler.core.tools import ToolCall, ToolResult
from ostler.text.sanitise import escape_invisible
from ostler.wire.acp import ToolCallContent, ToolCallLocation, text_content

MAX_TITLE_LENGTH = 200
CHECKBOXES = {"pending": "[ ]", "in_progress": "[~]", "completed": "[x]"}
STATUSES = {"ok": "completed"}
_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_MAX_LINE_NUMBER = 2**32 - 1
_SUBJECT_ARGUMENTS = ("path", "pattern", "query", "title", "name", "url", "ref")


def title_of(call: ToolCall) -> str:
    """One line a person understands: the command itself, or the tool and what it is about."""
    arguments = call.arguments
    command = arguments.get("command")
    if isinstance(command, str) and command:
        return _title_line(command)
    subject = next(
        (value for name in _SUBJECT_ARGUMENTS if isinstance(value := arguments.get(name), str) and value), ""
    )
    return _title_line(f"{call.tool} {subject}".strip())


def locations_of(arguments: Mapping[str, Any], display: Display, cwd: str) -> tuple[ToolCallLocation, ...]:
    """Where a call is at work: the file it names, then those it changes, at their first change."""
    found: dict[str, ToolCallLocation] = {}
    path, line = arguments.get("path"), arguments.get("line")
    if isinstance(path, str) and path:
        place = os.path.normpath(os.path.join(cwd, path))
        found[place] = ToolCallLocation(place, line if _is_line_number(line) else None)
    for block in display.blocks:
        if isinstance(block, DisplayDiff):
            place = os.path.normpath(os.path.join(cwd, block.path))
            found[place] = ToolCallLocation(place, _first_line(block.diff))
    return tuple(found.values())


def contents_of(display: Display, cwd: str) -> tuple[ToolCallContent, ...]:
    """What there is to see, change by change; without any of it, the line that sums it up."""
    shown = [content for block in display.blocks for content in _block_contents(block, cwd)]
    if not shown and display.summary:
        shown = [_text(display.summary)]
    return tuple(shown)


def result_contents(result: ToolResult, cwd: str) -> tuple[ToolCallContent, ...]:
    """The same of a result; what did not succeed says why."""
    shown = contents_of(result.for_human, cwd)
    summary = result.for_human.summary
    if result.status != "ok" and summary and result.for_human.blocks:
        return (_text(summary), *shown)
    return shown


def status_of(result: ToolResult) -> str:
    """The protocol knows two endings."""
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
    """A change as texts before and after, one for each hunk, as the protocol has no hunks."""
    for before, after in hunk_sides(block.diff):
        yield ToolCallContent(
            "diff", path=path, old_text=None if block.operation == "created" else before, new_text=after
        )
    if block.truncated or not block.diff:
        yield _text(f"{block.operation}, {block.additions} lines added, {block.deletions} removed")


def hunk_sides(diff: str) -> list[tuple[str, str]]:
    """The hunks of a unified diff, each as the text before and the text after."""
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
    """Where the file differs first; a hunk begins some lines before that."""
    found = _HUNK.search(diff)
    if not found:
        return None
    body = diff[found.end() :].split("\n")[1:]
    same = next((number for number, line in enumerate(body) if line[:1] != " "), 0)
    return max(int(found[2]) + same, 1)


def _is_line_number(value: Any) -> bool:
    """Whether a model's word for a line can be one in the protocol."""
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= _MAX_LINE_NUMBER


def _fence_text(text: str) -> str:
    """Output as it is, whatever marks it holds."""
    ticks = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, ticks + 1)
    return f"{fence}\n{text.rstrip()}\n{fence}"


def fence_lines(lines: Sequence[str], language: str = "") -> str:
    """Lines whose columns matter."""
    text = _fence_text("\n".join(lines))
    return text.replace("\n", f"{language}\n", 1) if language else text


def _text(text: str) -> ToolCallContent:
    return ToolCallContent("content", text_content(text))


def _title_line(text: str) -> str:
    line = escape_invisible(" ".join(text.split()))
    return line if len(line) <= MAX_TITLE_LENGTH else f"{line[: MAX_TITLE_LENGTH - 1]}…"
