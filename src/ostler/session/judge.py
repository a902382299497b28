"""Deciding: the policy first, then a person, and what their answer means for later calls."""

from collections.abc import Callable, Sequence

from ostler.policy.verdict import Policy, verdict
from ostler.session.asks import Asks
from ostler.vocabulary.events import Event, PermissionAsked, PermissionDecided, RuleAdded, StateChanged
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
        grants = (*self.grants.rules(), *session_rules)
        said = verdict(permission, self.policy, origin=origin, grants=grants, narrow=narrow)
        if said.action == "allow":
            return Decision("allow", reason=said.why)
        if said.action == "deny":
            return self._refuse(permission, said)
        return await self._ask(permission, said.once_only)

    def _refuse(self, permission: Permission, said: Verdict) -> Decision:
        unattended = said.steps[-1].name == "nobody home" and said.steps[-2].action == "ask"
        decision = Decision("deny", by="nobody" if unattended else "policy", reason=said.why)
        self._emit(PermissionDecided(self._new_id("ask"), permission, decision))
        return decision

    async def _ask(self, permission: Permission, once_only: bool) -> Decision:
        ask_id = self._new_id("ask")
        if not permission.options:
            permission = _with_options(permission, ONCE_ONLY if once_only else USUAL)
        self._emit(PermissionAsked(ask_id, permission, once_only))
        self._emit(StateChanged("awaiting_permission"))
        decision = Decision("cancel", by="nobody")
        try:
            decision = _once(await self.asks.wait(ask_id)) if once_only else await self.asks.wait(ask_id)
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


def _once(decision: Decision) -> Decision:
    """An answer for longer is taken as an answer for now: the dangerous class has no standing allow."""
    return Decision(decision.answer, decision.by, "once", decision.option_id, decision.feedback, decision.reason)


def _with_options(permission: Permission, options: tuple[Option, ...]) -> Permission:
    return Permission(
        permission.title, permission.needs, permission.preview, options, permission.call_id, permission.reason
    )
