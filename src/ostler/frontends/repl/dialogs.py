"""Shows the first open approval request or question and passes the user's input to it."""

from ostler.core.events import Event
from ostler.frontends.repl.console import Console
from ostler.frontends.repl.pager import Pager
from ostler.interaction.approval_form import ApprovalForm
from ostler.interaction.open_requests import AnswerCallback, OpenRequests
from ostler.interaction.question_form import QuestionForm
from ostler.rendering.asks import render_ask, render_field, render_hunk, render_menu, render_question
from ostler.rendering.style import Styler


class DialogQueue:
    """Open dialogs in the order of arrival; the first is on the screen."""

    def __init__(self, console: Console, paint: Styler, on_answer: AnswerCallback) -> None:
        self._console = console
        self._paint = paint
        self._requests = OpenRequests(on_answer)
        self._pager = Pager(console, paint)
        self._shown_id = ""

    def __bool__(self) -> bool:
        return bool(self._requests)

    @property
    def has_unanswered(self) -> bool:
        """Whether a dialog still needs an answer; one that was just answered does not."""
        return self._requests.has_unanswered

    def on_event(self, event: Event) -> None:
        """Add or close a dialog; it may also have been answered elsewhere."""
        closed = self._requests.on_event(event)
        if closed and self._shown_id == closed.id:
            self._shown_id = ""
            self._pager.drop()
            self._console.show([self._paint(f"  → {closed.outcome}", "dim")])
        self._show_first()

    def answer(self, line: str) -> None:
        """Handle a line that the user typed for the visible dialog."""
        first = self._requests.first
        if first is None or self._requests.is_first_answered:
            return
        if self._pager:
            self._pager.advance(line)
        elif not self._requests.submit(line):
            self._show_step(first[1])

    def go_back(self) -> bool:
        """Show the step before the current one of the visible dialog. Return False if there is none."""
        first = self._requests.first
        if first is None or not self._requests.go_back():
            return False
        self._show_step(first[1])
        return True

    def deny_all(self, reason: str) -> None:
        """Deny or decline all open dialogs."""
        self._requests.deny_all(reason)

    def _show_step(self, form: ApprovalForm | QuestionForm) -> None:
        self._pager.show(step_lines(form, self._paint), form.menu())

    def _show_first(self) -> None:
        first = self._requests.first
        if first and self._shown_id != first[0]:
            self._shown_id, form = first
            lines = form_lines(form, self._paint, with_keys=not self._console.numbers_menu)
            self._pager.show(lines, form.menu())


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
