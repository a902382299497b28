"""What a call needs, what the policy says to it, and what a person answered."""

from typing import Final, Literal

import msgspec

from ostler.core.display import Display

PolicyAction = Literal["allow", "ask", "deny"]
Danger = Literal["ordinary", "stranger", "confirm", "deny"]
UNKNOWN_PROGRAM: Final = "stranger"  # the stored value of the danger level for unknown programs


class Need(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing a call would do: a permission key and what it would do it to.

    `danger` is the guards' word on it: `confirm` may only ever be allowed once, by a person; `deny` never.
    `stranger` is asked about too, but a rule that names the program makes it ordinary.
    `always` is the pattern a standing rule would carry, if the person wants one. `confined` says that the system's
    sandbox holds it, whatever it does.
    """

    key: str
    subject: str
    danger: Danger = "ordinary"
    reason: str = msgspec.field(name="why", default="")
    rule_pattern: str = msgspec.field(name="always", default="")
    sandboxed: bool = msgspec.field(name="confined", default=False)


class AnswerOption(msgspec.Struct, frozen=True):
    """One answer that may be given to an ask."""

    id: str
    label: str
    kind: Literal["allow_once", "allow_session", "allow_always", "deny", "deny_always"]


class Permission(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a call would do, as data: never an ask by itself.

    `by_hunk` says that of the diffs in its preview some hunks may be allowed without the others.
    """

    title: str
    needs: tuple[Need, ...] = ()
    preview: Display = Display()
    options: tuple[AnswerOption, ...] = ()
    call_id: str = ""
    reason: str = ""
    by_hunk: bool = False

    @property
    def dangerous(self) -> bool:
        """Whether only a person may allow this, and only once."""
        return any(need.danger in {"confirm", "deny"} for need in self.needs)


class Decision(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer to a permission; `cancel` is an ask that nobody will answer any more, not a refusal.

    `hunks` are the only ones that are allowed, counted from 1 over all diffs of the preview (a diff without any counts
    as one); None allows all of it. Such an answer holds for this call alone.
    """

    answer: Literal["allow", "deny", "cancel"]
    by: Literal["policy", "person", "nobody"] = "policy"
    scope: Literal["once", "session", "project"] = msgspec.field(name="lasts", default="once")
    option_id: str = ""
    feedback: str = ""
    reason: str = ""
    hunks: tuple[int, ...] | None = None


class Rule(msgspec.Struct, frozen=True, omit_defaults=True):
    """`action` for calls whose key and subject match the two wildcard patterns."""

    key: str
    pattern: str
    action: PolicyAction
    origin: str = ""


class VerdictStep(msgspec.Struct, frozen=True, omit_defaults=True):
    """One step on the way to a verdict, for `permissions explain`."""

    name: str
    action: PolicyAction
    reason: str = ""


class Verdict(msgspec.Struct, frozen=True):
    """What the policy says, and how it got there."""

    action: PolicyAction
    steps: tuple[VerdictStep, ...]
    once_only: bool = False

    @property
    def reason(self) -> str:
        """The reason of the step that decided: the last one that changed the verdict."""
        said = [step for step in self.steps if step.reason and step.action == self.action]
        return said[-1].reason if said else ""


class Question(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something a backend or a tool wants to know of the person; `schema` is JSON Schema for a structured reply.

    With a `url` the person shall go there, and the reply says only whether they will. `by` names who asks. The session
    gives it its `id`, whatever it was.
    """

    id: str
    text: str
    schema: dict[str, object] | None = None
    url: str = ""
    asked_by: str = msgspec.field(name="by", default="")


class QuestionReply(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer to a question."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, object] | None = None
