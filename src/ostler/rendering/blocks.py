"""Renders finished transcript blocks as sanitised lines (PLAN, TOOL, ANSWER)."""

import json
from collections.abc import Iterator, Mapping, Sequence

from ostler.core.display import DisplayBlock, DisplayChecklist, DisplayDiff, DisplayFields, DisplayText
from ostler.core.tools import CALLS_THAT_CANNOT_RUN, ToolCall
from ostler.rendering.diffs import render_diff
from ostler.rendering.markdown import render_markdown
from ostler.rendering.measure import count_columns
from ostler.rendering.style import Styler
from ostler.rendering.wrapping import wrap, wrap_notice
from ostler.session.transcript import CallBlock, NoticeBlock, TextBlock, TodosBlock, TranscriptBlock, TurnEndBlock
from ostler.text.lazy_regex import lazy_regex
from ostler.text.sanitise import escape_to_one_line, sanitise
from ostler.text.truncate import omitted_lines
from ostler.text.width import clip

ARGUMENTS_WIDTH = 140
TITLE_WIDTH = 80
OUTPUT_LINES = 12
RESULT_INDENT = "    "
DIFF_LINES = 40
# The argument to show of calls whose other arguments the approval request or the result shows in a readable form.
MAIN_ARGUMENTS = {"edit": "path", "write": "path", "write_chunk": "path", "bash": "command"}
MAIN_ARGUMENTS |= {"connector_read": "path", "connector_write": "path", "connector_shell": "command"}
QUALIFIED_PREFIX = "SysBuiltIn."
TODO_MARKS = {"pending": "[ ]", "in_progress": "[~]", "completed": "[x]"}
_BLOCK_MARKER = lazy_regex(r"\A!unquote_start|!unquote_end\Z")


def render_block(block: TranscriptBlock, paint: Styler) -> list[str]:
    """Render a finished block."""
    match block:
        case TextBlock(text=text, segment=segment, truncated=truncated):
            head = paint(segment.upper(), "bold", "blue" if segment == "plan" else "green")
            truncation = [paint("  [truncated]", "yellow")] if truncated else []
            return [head, *indent(render_markdown(sanitise(text).strip("\n"), paint)), *truncation]
        case CallBlock():
            return list(render_result(block, paint))
        case TodosBlock(items=items, starter=starter):
            heading = paint("TODO", "bold") + (paint(" (started by Ostler)", "dim") if starter else "")
            return [heading, *(f"  {TODO_MARKS[item.status]} {sanitise(item.content)}" for item in items)]
        case NoticeBlock(level=level, text=text):
            return _render_notice(f"! {sanitise(text)}", paint, "red" if level == "error" else "yellow")
        case TurnEndBlock(turn_end=turn_end) if turn_end and turn_end.fault:
            return _render_notice(f"✗ {sanitise(str(turn_end.fault))}", paint, "red")
        case TurnEndBlock(turn_end=turn_end) if turn_end and turn_end.limit:
            return [paint(f"✗ stopped at a limit: {sanitise(turn_end.limit)}", "yellow")]
        case TurnEndBlock(turn_end=turn_end) if turn_end and turn_end.reason != "done":
            return [paint(f"✗ {turn_end.reason}", "yellow")]
        case _:
            return []


def render_call(call: ToolCall, paint: Styler, title: str = "", *, full: bool = False, as_words: bool = False) -> str:
    """Render the line of a call, `⏺ name (title) arguments`; the title only if it differs from the name.

    With `as_words`, short arguments are shown as words and not as JSON.

    A call by a qualified name, as in the XNL dialect, is shown by that name, with its arguments as an object.
    """
    if call.tool in CALLS_THAT_CANNOT_RUN:
        return _render_unread_call(call, paint, full=full)
    short_title = " ".join(sanitise(title).split())[:TITLE_WIDTH]
    is_qualified = (short_title or call.tool).startswith(QUALIFIED_PREFIX)
    name = short_title if is_qualified and short_title else " ".join(sanitise(call.tool).split())
    line = f"{paint('⏺', 'cyan')} {paint(name, 'bold')}"
    if title and title != call.tool and not is_qualified:
        line += f" {paint(f'({short_title})', 'dim')}"
    if call.tool == "todowrite" or (call.tool in ("patch", "connector_patch") and not full):
        return line  # the result shows the list or the files
    main_name = MAIN_ARGUMENTS.get(call.tool, "")
    main = call.arguments.get(main_name) if main_name else None
    readable = isinstance(main, str) and main.strip() and not full
    shown = {main_name: main} if readable else call.arguments
    is_words = readable and not is_qualified
    arguments = str(main) if is_words else json.dumps(shown, ensure_ascii=False)
    if as_words and not (full or is_words or is_qualified) and all(map(_is_word, shown.values())):
        arguments = " ".join(_argument_words(shown))
    arguments = escape_to_one_line(arguments)
    if len(arguments) > ARGUMENTS_WIDTH and not full:
        arguments = arguments[: ARGUMENTS_WIDTH - 1] + "…"
    return f"{line} {paint(arguments, 'dim')}"


def _is_word(value: object) -> bool:
    return isinstance(value, int | float) or (isinstance(value, str) and "\n" not in value)


def _argument_words(arguments: Mapping[str, object]) -> Iterator[str]:
    """Yield the first argument, which is the path or the pattern, and the others with their names."""
    for number, (name, value) in enumerate(arguments.items()):
        yield str(value) if number == 0 else f"{name}={value}"


def _render_unread_call(call: ToolCall, paint: Styler, *, full: bool) -> str:
    text = " ".join(sanitise(_BLOCK_MARKER.sub("", call.raw)).split())
    text = text if full else clip(text, ARGUMENTS_WIDTH)
    return f"{paint('⏺', 'cyan')} {paint('call', 'bold')} {paint(text, 'dim')}"


def render_result(block: CallBlock, paint: Styler, *, full: bool = False) -> Iterator[str]:
    """Yield the lines of a result, below the line of its call; shortened unless `full`."""
    colour = {"ok": "green", "failed": "red", "denied": "yellow"}.get(block.status, "yellow")
    blocked = "blocked: " if block.status == "denied" else ""
    summary = block.display.summary or (block.status if block.status != "ok" else "")
    first, *more = sanitise(summary).split("\n")
    yield from _wrap_result(f"  {paint('⎿', colour)} {blocked}{first}".rstrip(), paint)
    yield from (row for line in more for row in _wrap_result(f"    {line}".rstrip(), paint))
    for part in block.display.blocks:
        lines = [f"    {line}" for line in render_display_block(part, paint, full=full)]
        is_wrapped = not isinstance(part, DisplayDiff)
        yield from (row for line in lines for row in (_wrap_result(line, paint) if is_wrapped else (line,)))


def _wrap_result(line: str, paint: Styler) -> list[str]:
    """Wrap a line of a result, with its indent, unless the width is unknown."""
    columns = paint.columns()
    return wrap(line, columns, RESULT_INDENT) if 0 < columns < count_columns(line) else [line]


def render_display_block(block: DisplayBlock, paint: Styler, *, full: bool = False) -> list[str]:
    match block:
        case DisplayDiff(diff=diff):
            lines = render_diff(sanitise(diff), paint)
            return lines if full else shorten(lines, DIFF_LINES, paint)
        case DisplayText(text=text):
            lines = sanitise(text).splitlines()
            return lines if full else shorten(lines, OUTPUT_LINES, paint, omitted_lines(text))
        case DisplayChecklist(items=items):
            return [f"{TODO_MARKS[status]} {sanitise(text)}" for status, text in items]
        case DisplayFields(pairs=pairs):
            return [f"{name}: {sanitise(value)}" for name, value in pairs]


def shorten(lines: Sequence[str], max_lines: int, paint: Styler, more: int = 0) -> list[str]:
    """Return the first and last lines, with the number of omitted lines between them, `more` of them not in `lines`."""
    if len(lines) <= max_lines:
        return list(lines)
    head, tail = max_lines * 2 // 3, max_lines - max_lines * 2 // 3
    omitted = paint(f"… {len(lines) - max_lines + more} more lines", "dim")
    return [*lines[:head], omitted, *lines[-tail:]]


def _render_notice(text: str, paint: Styler, style: str) -> list[str]:
    return [paint(row, style) for row in wrap_notice(text, paint.columns())]


def indent(lines: Sequence[str]) -> list[str]:
    return [f"  {line}".rstrip() for line in lines]
