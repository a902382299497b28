"""Renders approval requests and questions, and the next step of each."""

from ostler.interaction.approval_form import ApprovalForm
from ostler.interaction.question_form import QuestionForm
from ostler.rendering.asks import render_ask, render_menu
from ostler.rendering.diffs import render_diff_for_approval
from ostler.rendering.style import Styler
from ostler.text.sanitise import escape_invisible


def form_lines(form: ApprovalForm | QuestionForm, paint: Styler, *, with_keys: bool) -> list[str]:
    """Render the request; with `with_keys` also the answers of an approval request, if the console does not."""
    if isinstance(form, ApprovalForm):
        return _approval_lines(form, paint, with_keys=with_keys)
    return _question_lines(form, paint)


def step_lines(form: ApprovalForm | QuestionForm, paint: Styler) -> list[str]:
    """Render what the user must see before the next answer."""
    return _hunk_lines(form, paint) if isinstance(form, ApprovalForm) else _field_lines(form, paint)


def _approval_lines(form: ApprovalForm, paint: Styler, *, with_keys: bool) -> list[str]:
    menu = render_menu(form.answers(), paint, confirmed_keys=form.lasting_keys()) if with_keys else []
    return ["", *render_ask(form.event, paint), *menu]


def _hunk_lines(form: ApprovalForm, paint: Styler) -> list[str]:
    if form.hunks is None:
        return []
    number, count, name, hunk = form.hunks.current
    head = paint(f"  hunk {number} of {count}: {escape_invisible(name)}", "bold")
    previous = [paint(f"  → {form.hunks.last_choice}", "dim")] if form.hunks.last_choice else []
    return [*previous, "", head, *(f"  {line}" for line in render_diff_for_approval(hunk, paint))]


def _question_lines(form: QuestionForm, paint: Styler) -> list[str]:
    question = form.question
    prefix = f"{question.asked_by} asks: " if question.asked_by else ""
    url = f"\n{question.url}" if question.url else ""
    first, *rest = escape_invisible(prefix + question.text + url).split("\n")
    return ["", paint(f"? {first}", "bold", "yellow"), *(f"  {line}" for line in rest), *_field_lines(form, paint)]


def _field_lines(form: QuestionForm, paint: Styler) -> list[str]:
    """Render the error of the last input, and the description and choices of the next field."""
    text = form.field_description
    description = escape_invisible(text).split("\n") if text else []
    choices = [f"  {number:>2}  {escape_invisible(label)}" for number, label in enumerate(form.field_choices, 1)]
    error = [paint(f"  {form.error}", "red")] if form.error else []
    return [*error, *(paint(f"  {line}", "dim") for line in description), *choices]
