"""Asks and questions, one after the other: each is shown, answered by a key or a line, and settled once."""

from collections.abc import Callable

from ostler.drawing.paint import Paint
from ostler.faces.repl.ask import Ask
from ostler.faces.repl.console import Console
from ostler.faces.repl.inquiry import Inquiry
from ostler.faces.repl.pages import Pages
from ostler.text.sanitise import visible
from ostler.vocabulary.events import (
    Event,
    PermissionAsked,
    PermissionDecided,
    QuestionAnswered,
    QuestionAsked,
)
from ostler.vocabulary.permission import Decision, Reply

Settle = Callable[[str, Decision | Reply], bool]


class Asking:
    """What waits for the person, in the order it came; the first is on the screen."""

    def __init__(self, console: Console, paint: Paint, settle: Settle) -> None:
        self._console = console
        self._paint = paint
        self._settle = settle
        self._open: dict[str, Ask | Inquiry] = {}
        self._pages = Pages(console, paint)
        self._shown = ""
        self._answered = ""

    def __bool__(self) -> bool:
        return bool(self._open)

    @property
    def waiting(self) -> bool:
        """Whether an answer is still to be given; one that was given just now is none."""
        return any(ask_id != self._answered for ask_id in self._open)

    def hear(self, event: Event) -> None:
        """Take in what was asked or settled, by whomever."""
        match event:
            case PermissionAsked(ask_id):
                self._open[ask_id] = Ask(event)
            case QuestionAsked(question):
                self._open[question.id] = Inquiry(event)
            case PermissionDecided(ask_id) if ask_id in self._open:
                self._close(ask_id, _told(event))
            case QuestionAnswered(question_id, reply) if question_id in self._open:
                self._close(question_id, f"  → {reply.action}")
            case _:
                return
        self._show_first()

    def answer(self, line: str) -> None:
        """What the person typed for the ask that is shown."""
        ask_id = next(iter(self._open))
        if ask_id == self._answered:
            return  # it was answered just now
        ask = self._open[ask_id]
        if self._pages:
            self._pages.take(line)
            return
        settled = ask.take(line)
        if settled is not None:
            self._answered = ask_id
            self._settle(ask_id, settled)
        else:
            self._pages.show(ask.step(self._paint), ask.menu())

    def refuse_all(self, reason: str) -> None:
        """Nobody will answer any more."""
        for ask_id, ask in tuple(self._open.items()):
            nobody = Decision("deny", by="nobody", reason=reason)
            self._settle(ask_id, nobody if isinstance(ask, Ask) else Reply("decline"))

    def _close(self, ask_id: str, told: str) -> None:
        del self._open[ask_id]
        if self._shown == ask_id:
            self._shown = ""
            self._pages.drop()
            self._console.show([self._paint(told, "dim")])

    def _show_first(self) -> None:
        ask_id = next(iter(self._open), "")
        if ask_id and self._shown != ask_id:
            self._shown = ask_id
            ask = self._open[ask_id]
            self._pages.show(ask.lines(self._paint, keys=not self._console.numbers), ask.menu())


def _told(decided: PermissionDecided) -> str:
    decision = decided.decision
    lasts = {"session": " for this session", "project": " always in this project"}.get(decision.lasts, "")
    if decision.feedback:
        return f"  → {decision.answer}, with your message"  # which stands below, where the call was blocked
    if decision.hunks is not None:
        return (
            f"  → {decision.answer}, only hunk{'s' * (len(decision.hunks) > 1)} {', '.join(map(str, decision.hunks))}"
        )
    said = decision.reason.partition("\n")[0]
    return f"  → {decision.answer}{lasts}{f': {visible(said)}' if said else ''}"
