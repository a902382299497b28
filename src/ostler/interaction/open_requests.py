"""The open approval requests and questions of a session, in the order of arrival."""

from collections.abc import Callable

import msgspec

from ostler.core.events import (
    Event,
    PermissionAsked,
    PermissionDecided,
    QuestionAnswered,
    QuestionAsked,
)
from ostler.core.permission import Decision, QuestionReply
from ostler.interaction.approval_form import ApprovalForm
from ostler.interaction.question_form import QuestionForm
from ostler.text.sanitise import escape_invisible

AnswerCallback = Callable[[str, Decision | QuestionReply], bool]


class ClosedRequest(msgspec.Struct, frozen=True):
    """A request that was answered, here or elsewhere, and its outcome in one line."""

    id: str
    outcome: str


class OpenRequests:
    """The open requests. The user answers the first one."""

    def __init__(self, on_answer: AnswerCallback) -> None:
        self._on_answer = on_answer
        self._forms: dict[str, ApprovalForm | QuestionForm] = {}
        self._answered_id = ""
        self.steps = 0  # grows with each step, which tells the steps of a request apart

    def __bool__(self) -> bool:
        return bool(self._forms)

    def __len__(self) -> int:
        return len(self._forms)

    @property
    def has_unanswered(self) -> bool:
        """Whether a request still needs an answer; one that was just answered does not."""
        return any(ask_id != self._answered_id for ask_id in self._forms)

    @property
    def first(self) -> tuple[str, ApprovalForm | QuestionForm] | None:
        """The id and the form of the first request."""
        return next(iter(self._forms.items()), None)

    @property
    def is_first_answered(self) -> bool:
        """Whether the session has not closed the first request yet, although it was answered."""
        return self._answered_id != "" and self._answered_id == next(iter(self._forms), None)

    def on_event(self, event: Event) -> ClosedRequest | None:
        """Add or close a request; it may also have been answered elsewhere. Return the closed one."""
        match event:
            case PermissionAsked(ask_id):
                self._forms[ask_id] = ApprovalForm(event)
            case QuestionAsked(question):
                self._forms[question.id] = QuestionForm(event)
            case PermissionDecided(ask_id) if ask_id in self._forms:
                return self._close(ask_id, describe_decision(event))
            case QuestionAnswered(question_id, reply) if question_id in self._forms:
                return self._close(question_id, f"{reply.action}{_by_whom(reply)}")
            case _:
                pass
        return None

    def submit(self, line: str) -> bool:
        """Handle a line for the first request. Return False if it needs another step or the line is invalid."""
        ask_id, form = next(iter(self._forms.items()))
        self.steps += 1
        result = form.submit(line)
        if result is None:
            return False
        self._answered_id = ask_id
        self._on_answer(ask_id, result)
        return True

    @property
    def can_go_back(self) -> bool:
        """Whether the first request shows a step that follows another one."""
        form = self.first[1] if self.first else None
        return isinstance(form, ApprovalForm) and form.can_go_back

    def go_back(self) -> bool:
        """Show the step before the current one of the first request. Return False if there is none."""
        form = self.first[1] if self.first else None
        if not isinstance(form, ApprovalForm) or not form.can_go_back:
            return False
        form.go_back()
        self.steps += 1
        return True

    def deny_all(self, reason: str) -> None:
        """Deny or decline all open requests."""
        for ask_id, form in tuple(self._forms.items()):
            denial = Decision("deny", by="nobody", reason=reason)
            self._on_answer(ask_id, denial if isinstance(form, ApprovalForm) else QuestionReply("decline"))

    def _close(self, ask_id: str, outcome: str) -> ClosedRequest:
        del self._forms[ask_id]
        return ClosedRequest(ask_id, outcome)


def describe_decision(event: PermissionDecided) -> str:
    """Return the decision in one line."""
    decision, by = event.decision, _by_whom(event.decision)
    scope = {"session": " for this session", "project": " always in this project"}.get(decision.scope, "")
    if decision.feedback:
        # the message itself is shown below, with the denied call
        return f"{decision.answer}{by}, with {'the' if by else 'your'} message"
    if decision.hunks is not None:
        hunks = f"only hunk{'s' * (len(decision.hunks) > 1)} {', '.join(map(str, decision.hunks))}"
        return f"{decision.answer}{by}, {hunks}"
    if decision.answer == "allow" and scope and (label := _label(event)):
        return f"{label}{by}"
    reason = decision.reason.partition("\n")[0]
    return f"{decision.answer}{scope}{by}{f': {escape_invisible(reason)}' if reason else ''}"


def _label(event: PermissionDecided) -> str:
    """Return the label of the chosen answer, or an empty string."""
    options = event.permission.options
    label = next((option.label for option in options if option.id == event.decision.option_id), "")
    return escape_invisible(label[:1].lower() + label[1:])


def _by_whom(answer: Decision | QuestionReply) -> str:
    return f" by {escape_invisible(answer.who)}" if answer.who else ""
