"""May this happen? Five steps to a verdict; each takes the one before, and a deny is never lifted."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from ostler.policy.presets import BASELINE
from ostler.policy.rules import STRICTNESS, last_match, names_program
from ostler.policy.wildcard import matches
from ostler.vocabulary.permission import Action, Need, Permission, Rule, Step, Verdict
from ostler.vocabulary.tools import Origin

Profile = Literal["paranoid", "balanced", "god_mode"]


class Policy(msgspec.Struct, frozen=True):
    """All that a verdict rests on, besides the call itself.

    `rules` are the layers from the baseline to the agent, in order; `narrow` lists may only make stricter;
    `flags` turn ask into allow for what they name, `sandbox_passes` for what the system's sandbox holds.
    `checks_pass`: the workspace is trusted, so its check after edits has a standing allow. `strangers_pass`: a program
    that nobody knows needs no rule that names it.
    """

    rules: tuple[Rule, ...] = BASELINE
    narrow: tuple[tuple[Rule, ...], ...] = ()
    profile: Profile = "balanced"
    whitelist: tuple[str, ...] = ()
    flags: tuple[Rule, ...] = ()
    attended: bool = True
    sandbox_passes: bool = False
    checks_pass: bool = False
    strangers_pass: bool = False


def verdict(
    permission: Permission,
    policy: Policy,
    *,
    origin: Origin = "model",
    grants: Sequence[Rule] = (),
    narrow: Sequence[Rule] = (),
) -> Verdict:
    """What the policy says to a permission: the strictest over its needs."""
    ways = [_way(need, policy, origin, grants, narrow) for need in permission.needs]
    steps = max(ways, key=lambda way: STRICTNESS[way[-1].action], default=(Step("rules", "allow", "needs nothing"),))
    return Verdict(steps[-1].action, steps, once_only=permission.dangerous)


def unsettled(
    permission: Permission,
    policy: Policy,
    *,
    origin: Origin = "model",
    grants: Sequence[Rule] = (),
    narrow: Sequence[Rule] = (),
) -> tuple[Need, ...]:
    """The needs that the policy does not allow by itself: only for these is anybody's answer wanted."""
    ways = [(need, _way(need, policy, origin, grants, narrow)) for need in permission.needs]
    return tuple(need for need, steps in ways if steps[-1].action != "allow")


def _way(
    need: Need, policy: Policy, origin: Origin, grants: Sequence[Rule], narrow: Sequence[Rule]
) -> tuple[Step, ...]:
    ruled = _by_rules(need, policy, origin, grants, narrow)
    profiled = _by_profile(need, policy, ruled.action)
    asked = _by_origin(origin, profiled.action)
    voucher = _voucher(need, policy, origin, grants) if need.danger == "stranger" else ""
    guarded = _by_guards(need, asked.action, voucher)
    attended = _by_attendance(need, policy, guarded.action)
    return (ruled, profiled, asked, guarded, attended)


def _told(need: Need) -> str:
    return f"{need.key} {need.subject}".strip()


def _by_rules(need: Need, policy: Policy, origin: Origin, grants: Sequence[Rule], narrow: Sequence[Rule]) -> Step:
    rule = last_match([*policy.rules, *grants], need)
    action: Action = rule.action if rule else "ask"
    why = _cite(rule) if rule else "no rule speaks of it"
    if action == "ask" and origin == "validation" and policy.checks_pass:
        action, why = "allow", "the check of a trusted workspace"
    for layer in (*policy.narrow, narrow):
        found = last_match(layer, need)
        if found and STRICTNESS[found.action] > STRICTNESS[action]:
            action, why = found.action, _cite(found)
    return Step("rules", action, f"{_told(need)}: {why}")


def _cite(rule: Rule) -> str:
    return f'rule {rule.key} "{rule.pattern}" {rule.action} ({rule.origin})'


def _by_profile(need: Need, policy: Policy, action: Action) -> Step:
    name = "profile and flags"
    paranoid = policy.profile == "paranoid"
    if action == "deny" or (action == "allow" and not paranoid):
        return Step(name, action)
    flag = last_match(policy.flags, need)
    if flag and flag.action == "allow":
        return Step(name, "allow", f"{flag.origin} allows {_told(need)}")
    if paranoid:
        return Step(name, "ask", "paranoid asks for every tool")
    if policy.sandbox_passes and need.confined:
        return Step(name, "allow", "the sandbox holds it")
    if policy.profile == "god_mode":
        return Step(name, "allow", "god_mode")
    if policy.profile == "balanced" and need.key == "bash" and _whitelisted(need.subject, policy.whitelist):
        return Step(name, "allow", "on the shell whitelist")
    return Step(name, action)


def _whitelisted(command: str, whitelist: Sequence[str]) -> bool:
    return any(matches(f"{prefix} *", command) for prefix in whitelist)


def _by_origin(origin: Origin, action: Action) -> Step:
    if origin == "person" and action == "ask":
        return Step("who asks", "allow", "you typed it yourself")
    return Step("who asks", action)


def _voucher(need: Need, policy: Policy, origin: Origin, grants: Sequence[Rule]) -> str:
    """Who or what answers for a program that nobody knows; empty when nobody does."""
    if need.confined:
        return "the sandbox holds it"
    if origin == "person":
        return "you typed it yourself"
    if origin == "validation" and policy.checks_pass:
        return "the check of a trusted workspace"
    if policy.profile == "god_mode":
        return "god_mode"
    if policy.strangers_pass:
        return "it may pass here"
    if _whitelisted(need.subject, policy.whitelist):
        return "on the shell whitelist"
    rules = (*policy.rules, *grants, *policy.flags)
    return next((_cite(rule) for rule in reversed(rules) if names_program(rule, need)), "")


def _by_guards(need: Need, action: Action, voucher: str) -> Step:
    if need.danger == "deny":
        return Step("guards", "deny", need.why)
    if voucher:
        return Step("guards", action, f"{need.why}, but {voucher}" if action == "allow" else need.why)
    if need.danger == "ordinary":
        return Step("guards", action)
    return Step("guards", "ask" if action == "allow" else action, need.why)


def _by_attendance(need: Need, policy: Policy, action: Action) -> Step:
    if action != "ask" or policy.attended:
        return Step("nobody home", action)
    why = f"{_told(need)} needs a person's consent and nobody can be asked here"
    if need.danger == "confirm":
        return Step("nobody home", "deny", f"{why}: {need.why}")
    return Step("nobody home", "deny", f"{why}; --allow '{need.key}:{need.always or need.subject}' would allow it")
