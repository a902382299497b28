"""Renders transcript blocks for a screen that can be drawn again: with folding, wrapped to its width."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from ostler.core.display import DisplayText
from ostler.rendering.blocks import indent, render_block, render_call, render_result, shorten
from ostler.rendering.diffs import render_diff
from ostler.rendering.style import Styler
from ostler.rendering.text_sections import TextSection, split_text
from ostler.rendering.wrapping import wrap, wrap_notice
from ostler.session.transcript import CallBlock, PromptBlock, TextBlock, ThoughtBlock, TranscriptBlock
from ostler.text.sanitise import sanitise
from ostler.text.truncate import truncate_middle
from ostler.text.width import clip

Fold = Literal["short", "full", "folded"]
PROMPT_LINES, PROMPT_COLUMNS = 60, 20_000
PROGRESS_LINES = 4
CALL_INDENT = "    "


class LinesBlock(TranscriptBlock):
    """Lines of the frontend itself, such as the output of a slash command; they are sanitised."""

    lines: tuple[str, ...] = ()
    styles: tuple[str, ...] = ()


class DiffBlock(TranscriptBlock):
    """A unified diff that the user asked for; it is not sanitised."""

    diff: str = ""


def render_screen_block(block: TranscriptBlock, paint: Styler, fold: Fold = "short") -> list[str]:
    """Render a block. `full` shows everything, `folded` only the heading."""
    match block:
        case PromptBlock(text=text):
            return _render_prompt(text, paint, fold)
        case TextBlock():
            return _render_text(block, paint)
        case ThoughtBlock(text=text):
            return _render_thought(text, paint, fold)
        case CallBlock():
            return _render_call(block, paint, fold)
        case LinesBlock(lines=lines, styles=styles):
            rows = [row for line in lines for row in wrap_notice(line, paint.columns())]
            return [paint(row, *styles) for row in rows] if styles else rows
        case DiffBlock(diff=diff):
            return [f"  {line}" for line in render_diff(sanitise(diff), paint)]
        case _:
            return render_block(block, paint)


def next_fold(blocks: Sequence[TranscriptBlock], fold: Fold) -> Fold:
    """Return what the fold key shows next: everything, only the heading, then the short form again."""
    if any(isinstance(block, CallBlock) for block in blocks):
        following: dict[Fold, Fold] = {"short": "full", "full": "folded", "folded": "short"}
        return following[fold]
    return "short" if fold == "full" else "full"


def copyable_text(blocks: Sequence[TranscriptBlock]) -> str:
    """Return the received text of blocks, for the clipboard."""
    return "\n".join(filter(None, map(_source_text, blocks)))


def _source_text(block: TranscriptBlock) -> str:
    match block:
        case PromptBlock(text=text) | TextBlock(text=text):
            return text
        case LinesBlock(lines=lines):
            return "\n".join(lines)
        case DiffBlock(diff=diff):
            return diff
        case CallBlock():
            return "\n".join(render_screen_block(block, Styler(enabled=False), "full"))
        case _:
            return "\n".join(render_screen_block(block, Styler(enabled=False)))


def _render_prompt(text: str, paint: Styler, fold: Fold) -> list[str]:
    limit = 10_000 if fold == "full" else PROMPT_LINES
    lines = shorten(sanitise(text).split("\n"), limit, Styler(enabled=False))
    columns = paint.columns() - 2
    rows = [
        row
        for line in (truncate_middle(line, PROMPT_COLUMNS).text for line in lines)
        for row in (wrap(line, columns) if columns > 0 else [line])
    ]
    first, *more = rows
    return [paint(f"> {first}", "bold"), *(paint(f"  {row}".rstrip(), "bold") for row in more)]


def _render_text(block: TextBlock, paint: Styler) -> list[str]:
    return [row for section in text_sections(block) for row in render_section(block, section, paint)]


def text_sections(block: TextBlock) -> list[TextSection]:
    """Return the parts of a text that can be rendered by themselves; at least one."""
    return split_text(sanitise(block.text).strip("\n"))


def render_section(block: TextBlock, section: TextSection, paint: Styler) -> list[str]:
    """Render one part of a text."""
    bullet = paint("●", "blue" if block.segment == "plan" else "green")
    truncation = [paint("  [truncated]", "yellow")] if block.truncated and section.is_last else []
    return [*section.render(paint, f"{bullet} "), *truncation]


def _render_thought(text: str, paint: Styler, fold: Fold) -> list[str]:
    lines = [line for line in sanitise(text).strip("\n").split("\n") if line.strip()]
    if not lines:
        return []
    columns = max(paint.columns() - 2, 0)
    if fold == "full":
        rows = [row for line in lines for row in (wrap(line, columns) if columns else [line])]
        return [paint("✻ thoughts", "dim"), *(paint(f"  {row}", "dim", "italic") for row in rows)]
    more = f" … {len(lines)} lines" if len(lines) > 1 else ""
    return [paint(f"✻ {clip(lines[0].strip(), max(columns - len(more) - 2, 20))}{more}", "dim", "italic")]


def _render_call(block: CallBlock, paint: Styler, fold: Fold) -> list[str]:
    is_manual = block.call is not None and block.call.origin == "person"
    full = fold == "full" or (is_manual and fold == "short")
    head = render_call(block.call, paint, block.title, full=fold == "full", as_words=True) if block.call else ""
    columns = paint.columns()
    rows = wrap(head, columns, CALL_INDENT) if columns > 0 else [head]
    if not block.final:
        return [*rows, *_progress_rows(block, paint, full=full)]
    if fold == "folded":
        folded = msgspec.structs.replace(block.display, blocks=())
        shown = msgspec.structs.replace(block, display=folded)
        marker = paint(" ▸", "dim") if block.display.blocks else ""
        result = list(render_result(shown, paint))[:1]
        return [*rows, *(f"{line}{marker}" for line in result)]
    return [*rows, *render_result(block, paint, full=full)]


def _progress_rows(block: CallBlock, paint: Styler, *, full: bool) -> list[str]:
    """Render the state of a call without a result, and the end of its output so far."""
    if block.status == "asking":
        return [f"  {paint('⎿', 'yellow')} {paint('waits for your answer', 'yellow')}"]
    texts = [part.text for part in block.display.blocks if isinstance(part, DisplayText)]
    lines = sanitise(texts[-1][-8000:]).rstrip("\n").split("\n") if texts else []
    shown = lines if full else lines[-PROGRESS_LINES:]
    return [paint(line, "dim") for line in indent(indent(shown))] if any(shown) else []
