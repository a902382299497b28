"""Renders approval requests and questions, and the next step of each."""

from ostler.interaction.approval_form import ApprovalForm
from ostler.interaction.question_form import QuestionForm
from ostler.rendering.asks import render_ask, render_menu
from ostler.rendering.forms import render_field, render_hunk, render_question
from ostler.rendering.style import Styler


def form_lines(form: ApprovalForm | QuestionForm, paint: Styler, *, with_keys: bool) -> list[str]:
    """Render the request; with `with_keys` also the answers of an approval request, if the console does not."""
    if isinstance(form, ApprovalForm):
        menu = render_menu(form.answers(), paint, confirmed_keys=form.lasting_keys()) if with_keys else []
        return ["", *render_ask(form.event, paint), *menu]
    return ["", *render_question(form.question, paint), *_field_lines(form, paint)]


def step_lines(form: ApprovalForm | QuestionForm, paint: Styler) -> list[str]:
    """Render what the user must see before the next answer."""
    if isinstance(form, ApprovalForm):
        return render_hunk(form.hunks.current, form.hunks.last_choice, paint) if form.hunks else []
    return _field_lines(form, paint)


def _field_lines(form: QuestionForm, paint: Styler) -> list[str]:
    return render_field(form.field_description, form.field_choices, form.error, paint)
