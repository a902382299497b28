"""Permission data: what a call needs, the policy's verdict, the user's decision, and questions to the user."""

from typing import Final, Literal

import msgspec

from ostler.core.display import Display

PolicyAction = Literal["allow", "ask", "deny"]
Danger = Literal["ordinary", "stranger", "confirm", "deny"]
CONFIRMED: Final = "confirmed"  # the field of a question that is answered with yes or no
UNKNOWN_PROGRAM: Final = "stranger"  # the stored value of the danger level for unknown programs


class Need(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing a call would do: a permission key and its subject, such as a path or a command.

    `danger` is how the policy classifies it. `confirm` can only be allowed by the user, once per call; `deny` never.
    `stranger` is an unknown program: it needs approval, unless a rule names it. `rule_pattern` is the pattern for a
    standing rule, if the user wants one. `sandboxed` means that it runs inside the operating system's sandbox,
    `read_only` that the workspace is read-only there.
    With `implied`, a command may do it, such as reading a file that it names: only rules for this key apply.
    """

    key: str
    subject: str
    danger: Danger = "ordinary"
    reason: str = msgspec.field(name="why", default="")
    rule_pattern: str = msgspec.field(name="always", default="")
    sandboxed: bool = msgspec.field(name="confined", default=False)
    implied: bool = False
    read_only: bool = False


class Rule(msgspec.Struct, frozen=True, omit_defaults=True):
    """A permission rule: `action` for needs whose key and subject match the two wildcard patterns."""

    key: str
    pattern: str
    action: PolicyAction
    origin: str = ""


class AnswerOption(msgspec.Struct, frozen=True, omit_defaults=True):
    """A possible answer to an approval request; `label` says what it covers.

    `rules` are the rules that a lasting answer adds; without them, it adds one for each need of the request.
    """

    id: str
    label: str
    kind: Literal["allow_once", "allow_session", "allow_always", "deny", "deny_always"]
    rules: tuple[Rule, ...] = ()


class Permission(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a call would do, as data for the policy and for an approval request.

    With `by_hunk` the user can allow some hunks of the diffs in the preview and leave out others. `is_approved` means
    that the user already allowed exactly this call, so that only a deny rule or a danger can still stop it. With
    `may_run_read_only`, a command can run with the workspace read-only instead of asking the user; `read_only_needs`
    are its needs then, if they differ because it otherwise runs outside the sandbox.
    """

    title: str
    needs: tuple[Need, ...] = ()
    preview: Display = Display()
    options: tuple[AnswerOption, ...] = ()
    call_id: str = ""
    reason: str = ""
    by_hunk: bool = False
    is_approved: bool = False
    may_run_read_only: bool = False
    read_only_needs: tuple[Need, ...] = ()

    @property
    def dangerous(self) -> bool:
        """Whether a rule cannot allow this: the user must approve each call, or it is always denied."""
        return any(need.danger in {"confirm", "deny"} for need in self.needs)


class Decision(msgspec.Struct, frozen=True, omit_defaults=True):
    """The decision about a permission. `cancel` means that the approval request was withdrawn, not denied.

    `hunks` lists the allowed hunks, counted from 1 over all diffs of the preview (a diff without hunks is one hunk);
    None allows everything. A decision with `hunks` applies to this call only. `who` is the name of the user who
    decided, empty for the local user. With `read_only`, the command is allowed only with the workspace read-only.
    """

    answer: Literal["allow", "deny", "cancel"]
    by: Literal["policy", "person", "nobody"] = "policy"
    scope: Literal["once", "session", "project"] = msgspec.field(name="lasts", default="once")
    option_id: str = ""
    feedback: str = ""
    reason: str = ""
    hunks: tuple[int, ...] | None = None
    who: str = ""
    read_only: bool = False


class VerdictStep(msgspec.Struct, frozen=True, omit_defaults=True):
    """One step of a policy evaluation, for `permissions explain`."""

    name: str
    action: PolicyAction
    reason: str = ""


class Verdict(msgspec.Struct, frozen=True):
    """The policy's result and the steps that led to it."""

    action: PolicyAction
    steps: tuple[VerdictStep, ...]
    once_only: bool = False

    @property
    def reason(self) -> str:
        """The reason of the last step with the verdict's action, or an empty string."""
        reasons = [step.reason for step in self.steps if step.reason and step.action == self.action]
        return reasons[-1] if reasons else ""


class Question(msgspec.Struct, frozen=True, omit_defaults=True):
    """A question from a backend or a tool to the user; `schema` is the JSON Schema of a structured reply.

    With a `url` the user is asked to open it, and the reply only says whether they agree. `asked_by` names the asking
    program. The session replaces `id` with a new one.
    """

    id: str
    text: str
    schema: dict[str, object] | None = None
    url: str = ""
    asked_by: str = msgspec.field(name="by", default="")


class QuestionReply(msgspec.Struct, frozen=True, omit_defaults=True):
    """The user's reply to a question; `who` is the user's name, empty for the local user."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, object] | None = None
    who: str = ""


def make_confirmation(text: str, label: str, *, asked_by: str = "") -> Question:
    """Return a question that is answered with yes or no; `label` is what a yes does."""
    field = {"type": "boolean", "title": label}
    return Question(
        "", text, {"type": "object", "properties": {CONFIRMED: field}, "required": [CONFIRMED]}, "", asked_by
    )


def is_confirmed(reply: QuestionReply) -> bool:
    """Return whether a confirmation was answered with a clear yes; anything else is a no."""
    return reply.action == "accept" and (reply.content or {}).get(CONFIRMED) is True
