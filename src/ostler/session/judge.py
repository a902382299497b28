"""Deciding: the policy first, then a person, and what their answer means for later calls."""

from collections.abc import Callable, Sequence

import msgspec

from ostler.policy.verdict import Policy, unsettled, verdict
from ostler.session.asks import Asks
from ostler.vocabulary.events import Event, PermissionAsked, PermissionDecided, RuleAdded
from ostler.vocabulary.permission import Decision, Option, Permission, Rule, Verdict
from ostler.vocabulary.seams import Grants
from ostler.vocabulary.tools import Origin

ONCE_ONLY = (Option("once", "Allow once", "allow_once"), Option("deny", "Deny", "deny"))
USUAL = (
    Option("once", "Allow once", "allow_once"),
    Option("session", "Allow for this session", "allow_session"),
    Option("always", "Always allow in this project", "allow_always"),
    Option("deny", "Deny", "deny"),
)


class NoGrants:
    """A project without standing rules, where none can be kept."""

    def rules(self) -> Sequence[Rule]:
        return ()

    def add(self, rule: Rule) -> None:
        """The session's own record is all there is."""

    def revoke(self, rule: Rule) -> bool:
        return False


class Judge:
    """One session's way from a permission to a decision."""

    def __init__(
        self,
        policy: Policy | Callable[[], Policy],
        grants: Grants,
        emit: Callable[[Event], None],
        new_id: Callable[[str], str],
    ) -> None:
        self._policy = policy
        self.grants = grants
        self.asks: Asks[Decision] = Asks()
        self._emit = emit
        self._new_id = new_id

    @property
    def policy(self) -> Policy:
        """The policy that is in force now; it may depend on which agent works."""
        return self._policy if isinstance(self._policy, Policy) else self._policy()

    async def decide(
        self, permission: Permission, origin: Origin, session_rules: Sequence[Rule], narrow: Sequence[Rule]
    ) -> Decision:
        """The policy's word; where it says ask, the first person's."""

        def grants() -> tuple[Rule, ...]:
            return (*self.grants.rules(), *session_rules)

        def judged() -> Verdict:
            return verdict(permission, self.policy, origin=origin, grants=grants(), narrow=narrow)

        said = judged()
        if said.action == "allow":
            return Decision("allow", reason=said.why)
        if said.action == "deny":
            return self._refuse(permission, said)
        needs = unsettled(permission, self.policy, origin=origin, grants=grants(), narrow=narrow)
        return await self._ask(msgspec.structs.replace(permission, needs=needs), said.once_only, judged)

    def _refuse(self, permission: Permission, said: Verdict) -> Decision:
        unattended = said.steps[-1].name == "nobody home" and said.steps[-2].action == "ask"
        decision = Decision("deny", by="nobody" if unattended else "policy", reason=said.why)
        self._emit(PermissionDecided(self._new_id("ask"), permission, decision))
        return decision

    async def _ask(self, permission: Permission, once_only: bool, judged: Callable[[], Verdict]) -> Decision:
        """A person's word; the rules may have become stricter while they thought about it."""
        ask_id = self._new_id("ask")
        if not permission.options:
            permission = msgspec.structs.replace(permission, options=ONCE_ONLY if once_only else USUAL)
        self._emit(PermissionAsked(ask_id, permission, once_only))
        decision = Decision("cancel", by="nobody")
        try:
            decision = _lasting(await self.asks.wait(ask_id), once_only)
            if decision.answer == "allow" and (now := judged()).action == "deny":
                decision = Decision("deny", reason=now.why)
        finally:
            self._emit(PermissionDecided(ask_id, permission, decision))
        self._remember(permission, decision)
        return decision

    def _remember(self, permission: Permission, decision: Decision) -> None:
        if decision.answer != "allow" or decision.lasts == "once":
            return
        for need in permission.needs:
            rule = Rule(need.key, need.always or need.subject, "allow", f"your answer: {decision.lasts}")
            if decision.lasts == "project":
                self.grants.add(rule)
            self._emit(RuleAdded(rule, decision.lasts))


def _lasting(decision: Decision, once_only: bool) -> Decision:
    """An answer for longer is one for now for the dangerous class, and where only a part of the call is allowed."""
    once = once_only or decision.hunks is not None
    return msgspec.structs.replace(decision, lasts="once") if once else decision
