"""Decides permissions: policy first, then the user; stores standing rules from the answer."""

from collections.abc import Callable, Sequence

import msgspec

from ostler.core.display import DisplayFields
from ostler.core.events import Event, PermissionAsked, PermissionDecided, RuleAdded
from ostler.core.permission import Decision, Need, Permission, Rule, Verdict
from ostler.core.protocols import StandingRules
from ostler.core.tools import CallOrigin
from ostler.policy.permission_rules import restricts_key
from ostler.policy.verdict import (
    NON_INTERACTIVE_STEP,
    Policy,
    evaluate_permission,
    evaluate_read_only,
    needs_to_approve,
)
from ostler.session.pending_answers import PendingAnswers


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
        self._waiting: dict[str, Callable[[], Verdict]] = {}  # how to evaluate each open request again
        self._emit = emit
        self._new_id = new_id

    @property
    def policy(self) -> Policy:
        """The current policy; it can depend on the active agent."""
        return self._policy()

    def may_read(
        self, path: str, origin: CallOrigin, session_rules: Sequence[Rule], restrictions: Sequence[Sequence[Rule]]
    ) -> bool:
        """Return whether the rules allow reading a file, or with an empty path, every file.

        What they ask about, the user may read but no tool shows.
        """
        grants = (*self.standing_rules.rules(), *session_rules)
        if not path:
            layers = (*self.policy.restrictions, *restrictions)
            is_restricted = restricts_key(self.policy.rules, "read", default=True)
            return not is_restricted and not any(restricts_key(layer, "read", default=False) for layer in layers)
        verdict = evaluate_permission(
            Permission("", (Need("read", path),)),
            self.policy,
            origin=origin,
            grants=grants,
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
        if permission.is_approved and not verdict.once_only:
            return Decision("allow", by="person", reason="you allowed this when the agent showed it")
        if confined := evaluate_read_only(
            permission, self.policy, origin=origin, grants=grants(), restrictions=restrictions
        ):
            return Decision("allow", reason=confined.reason, read_only=True)
        needs = needs_to_approve(permission, self.policy, origin=origin, grants=grants(), restrictions=restrictions)
        asked = _mark_validation(permission) if origin == "validation" else permission
        asked = msgspec.structs.replace(asked, needs=needs, may_run_read_only=False, read_only_needs=())
        return await self._ask(asked, verdict.once_only, evaluate)

    def _deny(self, permission: Permission, denial: Verdict) -> Decision:
        non_interactive = denial.steps[-1].name == NON_INTERACTIVE_STEP and denial.steps[-2].action == "ask"
        decision = Decision("deny", by="nobody" if non_interactive else "policy", reason=denial.reason)
        permission = msgspec.structs.replace(permission, may_run_read_only=False, read_only_needs=())
        self._emit(PermissionDecided(self._new_id("ask"), permission, decision))
        return decision

    async def _ask(self, permission: Permission, once_only: bool, evaluate: Callable[[], Verdict]) -> Decision:
        """Ask the user. Their approval is checked again, because the rules may have changed in the meantime."""
        ask_id = self._new_id("ask")
        from ostler.session.answer_options import with_answers  # imported late: most calls need no answer

        permission = with_answers(permission, once_only=once_only)
        self._emit(PermissionAsked(ask_id, permission, once_only))
        decision = Decision("cancel", by="nobody")
        self._waiting[ask_id] = evaluate
        try:
            decision = _limit_scope(await self.pending.wait(ask_id), permission, once_only)
            if decision.answer == "allow" and (verdict := evaluate()).action == "deny":
                decision = Decision("deny", reason=verdict.reason)
        finally:
            del self._waiting[ask_id]
            self._emit(PermissionDecided(ask_id, permission, decision))
        self._store_rules(permission, decision)
        return decision

    def _store_rules(self, permission: Permission, decision: Decision) -> None:
        if decision.answer != "allow" or decision.scope == "once":
            return
        from ostler.session.answer_options import rules_of_decision

        for rule in rules_of_decision(permission, decision):
            if decision.scope == "project":
                self.standing_rules.add(rule)
            self._emit(RuleAdded(rule, decision.scope))
        self._answer_covered_requests()

    def _answer_covered_requests(self) -> None:
        """Allow the other open requests that new rules cover."""
        for ask_id, evaluate in self._waiting.items():
            if (verdict := evaluate()).action == "allow":
                self.pending.answer(ask_id, Decision("allow", reason=verdict.reason))


def _mark_validation(permission: Permission) -> Permission:
    """Show that not the model, but Ostler wants to run the command."""
    preview = permission.preview
    blocks = (DisplayFields((("asked by", "Ostler, to check the edits"),)), *preview.blocks)
    return msgspec.structs.replace(permission, preview=msgspec.structs.replace(preview, blocks=blocks))


def _limit_scope(decision: Decision, permission: Permission, once_only: bool) -> Decision:
    """Reduce the scope to that of the answer; to `once` if nothing else is possible or only some hunks were allowed."""
    if once_only or decision.hunks is not None:
        return msgspec.structs.replace(decision, scope="once")
    chosen = next((option for option in permission.options if option.id == decision.option_id), None)
    if decision.scope == "project" and chosen and chosen.kind == "allow_session":
        return msgspec.structs.replace(decision, scope="session")
    return decision
