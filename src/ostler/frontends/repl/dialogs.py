"""Queue of open approval requests and questions; shows the first and records its answer."""

from collections.abc import Callable

from ostler.core.events import (
    Event,
    PermissionAsked,
    PermissionDecided,
    QuestionAnswered,
    QuestionAsked,
)
from ostler.core.permission import Decision, QuestionReply
from ostler.frontends.repl.ask_dialog import AskDialog
from ostler.frontends.repl.console import Console
from ostler.frontends.repl.pager import Pager
from ostler.frontends.repl.question_dialog import QuestionDialog
from ostler.rendering.style import Styler
from ostler.text.sanitise import escape_invisible

AnswerCallback = Callable[[str, Decision | QuestionReply], bool]


class DialogQueue:
    """Open dialogs in the order of arrival; the first is on the screen."""

    def __init__(self, console: Console, paint: Styler, on_answer: AnswerCallback) -> None:
        self._console = console
        self._paint = paint
        self._on_answer = on_answer
        self._dialogs: dict[str, AskDialog | QuestionDialog] = {}
        self._pager = Pager(console, paint)
        self._shown_id = ""
        self._answered_id = ""

    def __bool__(self) -> bool:
        return bool(self._dialogs)

    @property
    def has_unanswered(self) -> bool:
        """Whether a dialog still needs an answer; one that was just answered does not."""
        return any(ask_id != self._answered_id for ask_id in self._dialogs)

    def on_event(self, event: Event) -> None:
        """Add or close a dialog; it may also have been answered elsewhere."""
        match event:
            case PermissionAsked(ask_id):
                self._dialogs[ask_id] = AskDialog(event)
            case QuestionAsked(question):
                self._dialogs[question.id] = QuestionDialog(event)
            case PermissionDecided(ask_id) if ask_id in self._dialogs:
                self._close(ask_id, _describe_decision(event))
            case QuestionAnswered(question_id, reply) if question_id in self._dialogs:
                self._close(question_id, f"  → {reply.action}")
            case _:
                return
        self._show_first()

    def answer(self, line: str) -> None:
        """Handle a line that the user typed for the visible dialog."""
        ask_id = next(iter(self._dialogs))
        if ask_id == self._answered_id:
            return
        dialog = self._dialogs[ask_id]
        if self._pager:
            self._pager.advance(line)
            return
        result = dialog.submit(line)
        if result is not None:
            self._answered_id = ask_id
            self._on_answer(ask_id, result)
        else:
            self._pager.show(dialog.step_lines(self._paint), dialog.menu())

    def deny_all(self, reason: str) -> None:
        """Deny or decline all open dialogs."""
        for ask_id, dialog in tuple(self._dialogs.items()):
            denial = Decision("deny", by="nobody", reason=reason)
            self._on_answer(ask_id, denial if isinstance(dialog, AskDialog) else QuestionReply("decline"))

    def _close(self, ask_id: str, message: str) -> None:
        del self._dialogs[ask_id]
        if self._shown_id == ask_id:
            self._shown_id = ""
            self._pager.drop()
            self._console.show([self._paint(message, "dim")])

    def _show_first(self) -> None:
        ask_id = next(iter(self._dialogs), "")
        if ask_id and self._shown_id != ask_id:
            self._shown_id = ask_id
            dialog = self._dialogs[ask_id]
            self._pager.show(dialog.lines(self._paint, with_keys=not self._console.numbers_menu), dialog.menu())


def _describe_decision(event: PermissionDecided) -> str:
    decision = event.decision
    scope = {"session": " for this session", "project": " always in this project"}.get(decision.scope, "")
    if decision.feedback:
        return f"  → {decision.answer}, with your message"  # the message is shown below, with the denied call
    if decision.hunks is not None:
        return (
            f"  → {decision.answer}, only hunk{'s' * (len(decision.hunks) > 1)} {', '.join(map(str, decision.hunks))}"
        )
    reason = decision.reason.partition("\n")[0]
    return f"  → {decision.answer}{scope}{f': {escape_invisible(reason)}' if reason else ''}"
