"""Renders the steps of approval requests and questions. The user decides on what is shown, so nothing is shortened."""

from collections.abc import Sequence

from ostler.core.permission import Question
from ostler.rendering.diffs import render_diff_for_approval
from ostler.rendering.style import Styler
from ostler.text.sanitise import escape_invisible


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
