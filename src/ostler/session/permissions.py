"""Decides permissions: policy first, then the user; stores standing rules from the answer."""

from collections.abc import Callable, Sequence

import msgspec

from ostler.core.display import DisplayFields
from ostler.core.events import Event, PermissionAsked, PermissionDecided, RuleAdded
from ostler.core.permission import AnswerOption, Decision, Need, Permission, Rule, Verdict
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
    """Standing rules of a project that stores none."""

    def rules(self) -> Sequence[Rule]:
        return ()

    def add(self, rule: Rule) -> None:
        """Do nothing; the rule is only saved in the session."""

    def revoke(self, rule: Rule) -> bool:
        return False


class PermissionDecider:
    """Decides the permissions of one session."""

    def __init__(
        self,
        policy: Callable[[], Policy],
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
        """The current policy; it can depend on the active agent."""
        return self._policy()

    def may_read(
        self, path: str, origin: CallOrigin, session_rules: Sequence[Rule], restrictions: Sequence[Sequence[Rule]]
    ) -> bool:
        """Return whether the rules allow reading a file; what they ask about, the user may read but no tool shows."""
        verdict = evaluate_permission(
            Permission("", (Need("read", path),)),
            self.policy,
            origin=origin,
            grants=(*self.standing_rules.rules(), *session_rules),
            restrictions=restrictions,
        )
        action = verdict.steps[0].action
        return action == "allow" or (action == "ask" and origin == "person")

    async def decide(
        self,
        permission: Permission,
        origin: CallOrigin,
        session_rules: Sequence[Rule],
        restrictions: Sequence[Sequence[Rule]],
    ) -> Decision:
        """Return the policy's decision, or the user's if the policy says `ask`."""

        def grants() -> tuple[Rule, ...]:
            return (*self.standing_rules.rules(), *session_rules)

        def evaluate() -> Verdict:
            return evaluate_permission(
                permission, self.policy, origin=origin, grants=grants(), restrictions=restrictions
            )

        verdict = evaluate()
        if verdict.action == "allow":
            return Decision("allow", reason=verdict.reason)
        if verdict.action == "deny":
            return self._deny(permission, verdict)
        needs = needs_to_approve(permission, self.policy, origin=origin, grants=grants(), restrictions=restrictions)
        asked = _mark_validation(permission) if origin == "validation" else permission
        return await self._ask(msgspec.structs.replace(asked, needs=needs), verdict.once_only, evaluate)

    def _deny(self, permission: Permission, denial: Verdict) -> Decision:
        non_interactive = denial.steps[-1].name == NON_INTERACTIVE_STEP and denial.steps[-2].action == "ask"
        decision = Decision("deny", by="nobody" if non_interactive else "policy", reason=denial.reason)
        self._emit(PermissionDecided(self._new_id("ask"), permission, decision))
        return decision

    async def _ask(self, permission: Permission, once_only: bool, evaluate: Callable[[], Verdict]) -> Decision:
        """Ask the user. Their approval is checked again, because the rules may have changed in the meantime."""
        ask_id = self._new_id("ask")
        if not permission.options:
            permission = msgspec.structs.replace(permission, options=ONCE_OPTIONS if once_only else DEFAULT_OPTIONS)
        self._emit(PermissionAsked(ask_id, permission, once_only))
        decision = Decision("cancel", by="nobody")
        try:
            decision = _limit_scope(await self.pending.wait(ask_id), once_only)
            if decision.answer == "allow" and (verdict := evaluate()).action == "deny":
                decision = Decision("deny", reason=verdict.reason)
        finally:
            self._emit(PermissionDecided(ask_id, permission, decision))
        self._store_rules(permission, decision)
        return decision

    def _store_rules(self, permission: Permission, decision: Decision) -> None:
        if decision.answer != "allow" or decision.scope == "once":
            return
        answered = f"answer of {decision.who}" if decision.who else "your answer"
        for need in permission.needs:
            rule = Rule(need.key, need.rule_pattern or need.subject, "allow", f"{answered}: {decision.scope}")
            if decision.scope == "project":
                self.standing_rules.add(rule)
            self._emit(RuleAdded(rule, decision.scope))


def _mark_validation(permission: Permission) -> Permission:
    """Show that not the model, but Ostler wants to run the command."""
    preview = permission.preview
    blocks = (DisplayFields((("asked by", "Ostler, to check the edits"),)), *preview.blocks)
    return msgspec.structs.replace(permission, preview=msgspec.structs.replace(preview, blocks=blocks))


def _limit_scope(decision: Decision, once_only: bool) -> Decision:
    """Reduce the scope to `once` if the call can only be allowed once or only some hunks were allowed."""
    once = once_only or decision.hunks is not None
    return msgspec.structs.replace(decision, scope="once") if once else decision
