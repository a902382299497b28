"""Deciding: the policy first, then a person, and what their answer means for later calls."""

from collections.abc import Callable, Sequence

import msgspec

from ostler.core.events import Event, PermissionAsked, PermissionDecided, RuleAdded
from ostler.core.permission import AnswerOption, Decision, Permission, Rule, Verdict
from ostler.core.protocols import StandingRules
from ostler.core.tools import CallOrigin
from ostler.policy.verdict import NON_INTERACTIVE_STEP, Policy, evaluate_permission, needs_to_approve
from ostler.session.pending_answers import PendingAnswers

ONCE_OPTIONS = (AnswerOption("once", "Allow once", "allow_once"), AnswerOption("deny", "Deny", "deny"))
DEFAULT_OPTIONS = (
    AnswerOption("once", "Allow once", "allow_once"),
    AnswerOption("session", "Allow for this session", "allow_session"),
    AnswerOption("always", "Always allow in this project", "allow_always"),
    AnswerOption("deny", "Deny", "deny"),
)


class NoStandingRules:
    """A project without standing rules, where none can be kept."""

    def rules(self) -> Sequence[Rule]:
        return ()

    def add(self, rule: Rule) -> None:
        """The session's own record is all there is."""

    def revoke(self, rule: Rule) -> bool:
        return False


class PermissionDecider:
    """One session's way from a permission to a decision."""

    def __init__(
        self,
        policy: Policy | Callable[[], Policy],
        standing_rules: StandingRules,
        emit: Callable[[Event], None],
        new_id: Callable[[str], str],
    ) -> None:
        self._policy = policy
        self.standing_rules = standing_rules
        self.pending: PendingAnswers[Decision] = PendingAnswers()
        self._emit = emit
        self._new_id = new_id

    @property
    def policy(self) -> Policy:
        """The policy that is in force now; it may depend on which agent works."""
        return self._policy if isinstance(self._policy, Policy) else self._policy()

    async def decide(
        self, permission: Permission, origin: CallOrigin, session_rules: Sequence[Rule], narrow: Sequence[Rule]
    ) -> Decision:
        """The policy's word; where it says ask, the first person's."""

        def grants() -> tuple[Rule, ...]:
            return (*self.standing_rules.rules(), *session_rules)

        def judged() -> Verdict:
            return evaluate_permission(permission, self.policy, origin=origin, grants=grants(), restrictions=narrow)

        said = judged()
        if said.action == "allow":
            return Decision("allow", reason=said.reason)
        if said.action == "deny":
            return self._deny(permission, said)
        needs = needs_to_approve(permission, self.policy, origin=origin, grants=grants(), restrictions=narrow)
        return await self._ask(msgspec.structs.replace(permission, needs=needs), said.once_only, judged)

    def _deny(self, permission: Permission, denial: Verdict) -> Decision:
        unattended = denial.steps[-1].name == NON_INTERACTIVE_STEP and denial.steps[-2].action == "ask"
        decision = Decision("deny", by="nobody" if unattended else "policy", reason=denial.reason)
        self._emit(PermissionDecided(self._new_id("ask"), permission, decision))
        return decision

    async def _ask(self, permission: Permission, once_only: bool, evaluate: Callable[[], Verdict]) -> Decision:
        """A person's word; the rules may have become stricter while they thought about it."""
        ask_id = self._new_id("ask")
        if not permission.options:
            permission = msgspec.structs.replace(permission, options=ONCE_OPTIONS if once_only else DEFAULT_OPTIONS)
        self._emit(PermissionAsked(ask_id, permission, once_only))
        decision = Decision("cancel", by="nobody")
        try:
            decision = _limit_scope(await self.pending.wait(ask_id), once_only)
            if decision.answer == "allow" and (now := evaluate()).action == "deny":
                decision = Decision("deny", reason=now.reason)
        finally:
            self._emit(PermissionDecided(ask_id, permission, decision))
        self._store_rules(permission, decision)
        return decision

    def _store_rules(self, permission: Permission, decision: Decision) -> None:
        if decision.answer != "allow" or decision.scope == "once":
            return
        for need in permission.needs:
            rule = Rule(need.key, need.rule_pattern or need.subject, "allow", f"your answer: {decision.scope}")
            if decision.scope == "project":
                self.standing_rules.add(rule)
            self._emit(RuleAdded(rule, decision.scope))


def _limit_scope(decision: Decision, once_only: bool) -> Decision:
    """An answer for longer is one for now for the dangerous class, and where only a part of the call is allowed."""
    once = once_only or decision.hunks is not None
    return msgspec.structs.replace(decision, scope="once") if once else decision
