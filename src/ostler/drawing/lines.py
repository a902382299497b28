"""Transcript blocks as lines of text, sanitised: PLAN, TOOL and ANSWER segments for anything that only prints."""

import json
from collections.abc import Iterator, Sequence

from ostler.drawing.diffs import diff_lines
from ostler.drawing.markdown import markdown_lines
from ostler.drawing.paint import Paint
from ostler.drawing.wrap import told_rows
from ostler.session.transcript import Block, CallBlock, EndBlock, NoticeBlock, TextBlock, TodosBlock
from ostler.text.sanitise import sanitise
from ostler.vocabulary.display import Checklist, DiffShown, DisplayBlock, Fields, Note
from ostler.vocabulary.tools import ToolCall

ARGUMENTS_WIDTH = 140
TITLE_WIDTH = 80
OUTPUT_LINES = 12
DIFF_LINES = 40
MARKS = {"pending": "[ ]", "in_progress": "[~]", "completed": "[x]"}


def block_lines(block: Block, paint: Paint) -> list[str]:
    """A settled block, drawn."""
    match block:
        case TextBlock(text=text, segment=segment, cut=cut):
            head = paint(segment.upper(), "bold", "blue" if segment == "plan" else "green")
            ending = [paint("  [cut off here]", "yellow")] if cut else []
            return [head, *indented(markdown_lines(sanitise(text).strip("\n"), paint)), *ending]
        case CallBlock():
            return list(result_lines(block, paint))
        case TodosBlock(items=items):
            return [paint("TODO", "bold"), *(f"  {MARKS[item.status]} {sanitise(item.content)}" for item in items)]
        case NoticeBlock(level=level, text=text):
            return _told(f"! {sanitise(text)}", paint, "red" if level == "error" else "yellow")
        case EndBlock(ended=ended) if ended and ended.fault:
            return _told(f"✗ {sanitise(str(ended.fault))}", paint, "red")
        case EndBlock(ended=ended) if ended and ended.limit:
            return [paint(f"✗ stopped at a limit: {sanitise(ended.limit)}", "yellow")]
        case EndBlock(ended=ended) if ended and ended.reason != "done":
            return [paint(f"✗ {ended.reason}", "yellow")]
        case _:
            return []


def call_line(call: ToolCall, paint: Paint, title: str = "", *, whole: bool = False) -> str:
    """`⏺ name (title) {…}`: that a call begins; a title only where it says more than the name."""
    named = f"{paint('⏺', 'cyan')} {paint(sanitise(call.tool), 'bold')}"
    if title and title != call.tool:
        shown = " ".join(sanitise(title).split())[:TITLE_WIDTH]
        named += f" {paint(f'({shown})', 'dim')}"
    if call.tool == "todowrite":
        return named  # the checklist below says the rest
    arguments = json.dumps(call.arguments, ensure_ascii=False)
    if len(arguments) > ARGUMENTS_WIDTH and not whole:
        arguments = arguments[: ARGUMENTS_WIDTH - 1] + "…"
    return f"{named} {paint(sanitise(arguments), 'dim')}"


def result_lines(block: CallBlock, paint: Paint, *, whole: bool = False) -> Iterator[str]:
    """What came of a call, below its line; shortened, unless whoever looks wanted the whole of it."""
    colour = {"ok": "green", "failed": "red", "denied": "yellow"}.get(block.status, "yellow")
    blocked = "blocked: " if block.status == "denied" else ""
    told = block.display.summary or (block.status if block.status != "ok" else "")
    first, *more = sanitise(told).split("\n")
    yield f"  {paint('⎿', colour)} {blocked}{first}".rstrip()
    yield from (f"    {line}".rstrip() for line in more)
    for part in block.display.blocks:
        yield from (f"    {line}" for line in display_lines(part, paint, whole=whole))


def display_lines(part: DisplayBlock, paint: Paint, *, whole: bool = False) -> list[str]:
    """One part of a display, drawn."""
    match part:
        case DiffShown(diff=diff):
            lines = diff_lines(sanitise(diff), paint)
            return lines if whole else shortened(lines, DIFF_LINES, paint)
        case Note(text=text):
            lines = sanitise(text).splitlines()
            return lines if whole else shortened(lines, OUTPUT_LINES, paint)
        case Checklist(items=items):
            return [f"{MARKS[status]} {sanitise(text)}" for status, text in items]
        case Fields(pairs=pairs):
            return [f"{name}: {sanitise(value)}" for name, value in pairs]


def shortened(lines: Sequence[str], most: int, paint: Paint) -> list[str]:
    """The beginning and the end of many lines, and how many there are between."""
    if len(lines) <= most:
        return list(lines)
    head, tail = most * 2 // 3, most - most * 2 // 3
    left = paint(f"… {len(lines) - most} more lines", "dim")
    return [*lines[:head], left, *lines[-tail:]]


def _told(text: str, paint: Paint, style: str) -> list[str]:
    return [paint(row, style) for row in told_rows(text, paint.columns())]


def indented(lines: Sequence[str]) -> list[str]:
    """Below their heading."""
    return [f"  {line}".rstrip() for line in lines]
