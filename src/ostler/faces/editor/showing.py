"""How a tool call of ours looks in an editor: its title, its places, its changes, its output."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ostler.text.sanitise import visible
from ostler.vocabulary.display import Checklist, DiffShown, Display, DisplayBlock, Fields, Note
from ostler.vocabulary.tools import ToolCall, ToolResult
from ostler.wire.acp import Location, ToolContent, text_content

MOST_TITLE = 200
MARKS = {"pending": "[ ]", "in_progress": "[~]", "completed": "[x]"}
STATUS = {"ok": "completed"}
_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_MOST_LINE = 2**32 - 1
_SUBJECTS = ("path", "pattern", "query", "title", "name", "url", "ref")


def title_of(call: ToolCall) -> str:
    """One line a person understands: the command itself, or the tool and what it is about."""
    arguments = call.arguments
    command = arguments.get("command")
    if isinstance(command, str) and command:
        return _line(command)
    subject = next((value for name in _SUBJECTS if isinstance(value := arguments.get(name), str) and value), "")
    return _line(f"{call.tool} {subject}".strip())


def locations_of(arguments: Mapping[str, Any], display: Display, cwd: str) -> tuple[Location, ...]:
    """Where a call is at work: the file it names, then those it changes, at their first change."""
    found: dict[str, Location] = {}
    path, line = arguments.get("path"), arguments.get("line")
    if isinstance(path, str) and path:
        place = os.path.normpath(os.path.join(cwd, path))
        found[place] = Location(place, line if _is_line(line) else None)
    for block in display.blocks:
        if isinstance(block, DiffShown):
            place = os.path.normpath(os.path.join(cwd, block.path))
            found[place] = Location(place, _first_line(block.diff))
    return tuple(found.values())


def contents_of(display: Display, cwd: str) -> tuple[ToolContent, ...]:
    """What there is to see, change by change; without any of it, the line that sums it up."""
    shown = [content for block in display.blocks for content in _contents(block, cwd)]
    if not shown and display.summary:
        shown = [_text(display.summary)]
    return tuple(shown)


def result_contents(result: ToolResult, cwd: str) -> tuple[ToolContent, ...]:
    """The same of a result; what did not succeed says why."""
    shown = contents_of(result.for_human, cwd)
    summary = result.for_human.summary
    if result.status != "ok" and summary and result.for_human.blocks:
        return (_text(summary), *shown)
    return shown


def status_of(result: ToolResult) -> str:
    """The protocol knows two endings."""
    return STATUS.get(result.status, "failed")


def _contents(block: DisplayBlock, cwd: str) -> Iterator[ToolContent]:
    match block:
        case DiffShown():
            yield from _diffs(block, os.path.normpath(os.path.join(cwd, block.path)))
        case Note(text, kind):
            yield _text(_fenced(text) if kind == "output" else text)
        case Checklist(items):
            yield _text("\n".join(f"- {MARKS[status]} {text}" for status, text in items))
        case Fields(pairs):
            yield _text("\n".join(f"- {name}: {visible(value)}" for name, value in pairs))


def _diffs(shown: DiffShown, path: str) -> Iterator[ToolContent]:
    """A change as texts before and after, one for each hunk, as the protocol has no hunks."""
    for before, after in sides(shown.diff):
        yield ToolContent("diff", path=path, old_text=None if shown.operation == "created" else before, new_text=after)
    if shown.cut or not shown.diff:
        yield _text(f"{shown.operation}, {shown.additions} lines added, {shown.deletions} removed")


def sides(diff: str) -> list[tuple[str, str]]:
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


def _is_line(value: Any) -> bool:
    """Whether a model's word for a line can be one in the protocol."""
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= _MOST_LINE


def _fenced(text: str) -> str:
    """Output as it is, whatever marks it holds."""
    ticks = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, ticks + 1)
    return f"{fence}\n{text.rstrip()}\n{fence}"


def fenced(lines: Sequence[str], language: str = "") -> str:
    """Lines whose columns matter."""
    text = _fenced("\n".join(lines))
    return text.replace("\n", f"{language}\n", 1) if language else text


def _text(text: str) -> ToolContent:
    return ToolContent("content", text_content(text))


def _line(text: str) -> str:
    line = visible(" ".join(text.split()))
    return line if len(line) <= MOST_TITLE else f"{line[: MOST_TITLE - 1]}…"
