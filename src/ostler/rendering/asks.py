"""Renders approval requests and questions in full, and the steps in which they are answered.

The user decides on what is shown, so nothing is shortened and invisible characters are escaped.
"""

from collections.abc import Sequence

from ostler.core.display import DisplayBlock, DisplayDiff, DisplayFields, DisplayText
from ostler.core.events import PermissionAsked
from ostler.core.permission import Need, Permission, Question
from ostler.rendering.blocks import render_display_block
from ostler.rendering.diffs import has_crlf, render_diff_for_approval
from ostler.rendering.side_by_side import MIN_COLUMNS, render_side_by_side
from ostler.rendering.style import Styler
from ostler.session.answer_options import unnamed_rules
from ostler.text.sanitise import escape_invisible


def render_ask(ask: PermissionAsked, paint: Styler, *, side_by_side: int = 0) -> list[str]:
    """Render an approval request without its answers. `side_by_side` is the width of diffs in two columns."""
    permission = ask.permission
    lines = [paint(line, "bold", "yellow") for line in _hanging_lines("? ", permission.title)]
    for block in permission.preview.blocks:
        lines += [f"  {line}" for line in _preview_lines(block, permission.title, paint, side_by_side)]
    if permission.reason and not _shows_reason(permission):
        lines += _hanging_lines("  the model's reason: ", permission.reason)
    lines += [line for need in dict.fromkeys(permission.needs) for line in _need_lines(need, permission.title, paint)]
    lines += [paint(f"  {line}", "red") for line in _impact_lines(permission)]
    if not ask.once_only:
        lines += [paint(f"  rule of the lasting answers: {rule}", "dim") for rule in unnamed_rules(permission)]
    else:
        lines.append(paint("  this can only be allowed once; you will be asked every time", "dim"))
    return lines


def render_menu(answers: Sequence[tuple[str, str]], paint: Styler, confirmed_keys: Sequence[str] = ()) -> list[str]:
    """Render the answers with their keys."""
    enter = paint(", then Enter", "dim")
    return [f"  {paint(f'[{key}]', 'bold')} {label}{enter if key in confirmed_keys else ''}" for key, label in answers]


def render_hunk(current: tuple[int, int, str, str], last_choice: str, paint: Styler) -> list[str]:
    """Render a hunk to accept or skip: its number, the number of hunks, its file and its text."""
    number, count, name, hunk = current
    head = paint(f"  hunk {number} of {count}: {escape_invisible(name)}", "bold")
    previous = [paint(f"  → {last_choice}", "dim")] if last_choice else []
    return [*previous, "", head, *(f"  {line}" for line in render_diff_for_approval(hunk, paint))]


def render_question(question: Question, paint: Styler) -> list[str]:
    """Render the text of a question, without its fields."""
    prefix = f"{question.asked_by} asks: " if question.asked_by else ""
    url = f"\n{question.url}" if question.url else ""
    first, *rest = escape_invisible(prefix + question.text + url).split("\n")
    return [paint(f"? {first}", "bold", "yellow"), *(f"  {line}" for line in rest)]


def render_field(description: str, choices: Sequence[str], error: str, paint: Styler) -> list[str]:
    """Render the error of the last input, and the description and choices of the next field."""
    lines = escape_invisible(description).split("\n") if description else []
    numbered = [f"  {number:>2}  {escape_invisible(label)}" for number, label in enumerate(choices, 1)]
    errors = [paint(f"  {error}", "red")] if error else []
    return [*errors, *(paint(f"  {line}", "dim") for line in lines), *numbered]


def _hanging_lines(prefix: str, text: str) -> list[str]:
    first, *more = escape_invisible(text).split("\n")
    return [prefix + first, *(" " * len(prefix) + line for line in more)]


def _preview_lines(block: DisplayBlock, title: str, paint: Styler, side_by_side: int) -> list[str]:
    """Render one block of the preview, without fields that repeat the end of the title."""
    match block:
        case DisplayDiff(path, diff, operation, additions, deletions, truncated):
            head = f"{escape_invisible(path)}: {_planned(operation)}, +{additions} -{deletions}"
            truncation = [paint("[diff truncated: it is too long to show]", "red")] if truncated else []
            crlf = [paint("lines end with \\r\\n", "dim")] if has_crlf(diff) else []
            return [head, *crlf, *_diff_lines(diff, paint, side_by_side), *truncation]
        case DisplayFields(pairs):
            shown = ((name, value) for name, value in pairs if not title.endswith(f" {value}"))
            return [line for name, value in shown for line in _hanging_lines(f"{name}: ", value)]
        case DisplayText(text):
            return escape_invisible(text).splitlines()
        case _:
            return render_display_block(block, paint, full=True)


def _diff_lines(diff: str, paint: Styler, side_by_side: int) -> list[str]:
    if side_by_side < MIN_COLUMNS:
        return render_diff_for_approval(diff, paint)
    return render_side_by_side(diff.replace("\r\n", "\n") if has_crlf(diff) else diff, paint, side_by_side)


def _planned(operation: str) -> str:
    return operation if operation == "unchanged" else f"would be {operation}"


def _shows_reason(permission: Permission) -> bool:
    return any(
        name.startswith("reason")
        for block in permission.preview.blocks
        if isinstance(block, DisplayFields)
        for name, _ in block.pairs
    )


def _need_lines(need: Need, title: str, paint: Styler) -> list[str]:
    """Render a need, unless the title already shows it."""
    if title.partition(" ")[2] == need.subject and need.danger == "ordinary":
        return []
    verb = "runs" if need.key == "bash" else f"needs {need.key}:"
    return [paint(line, "dim") for line in _hanging_lines(f"  {verb} ", need.subject)]


def _impact_lines(permission: Permission) -> list[str]:
    already_shown = {
        value
        for block in permission.preview.blocks
        if isinstance(block, DisplayFields)
        for name, value in block.pairs
        if name == "impact"
    }
    return [
        f"impact: {escape_invisible(reason)}"
        for reason in dict.fromkeys(need.reason for need in permission.needs)
        if reason and reason not in already_shown
    ]
