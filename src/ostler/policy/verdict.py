"""May this happen? Five steps to a verdict; each takes the one before, and a deny is never lifted."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from ostler.core.permission import Need, Permission, PolicyAction, Rule, Verdict, VerdictStep
from ostler.core.tools import CallOrigin
from ostler.policy.permission_rules import STRICTNESS, last_match, names_program
from ostler.policy.presets import BASELINE
from ostler.policy.wildcard import matches

Profile = Literal["paranoid", "balanced", "god_mode"]


class Policy(msgspec.Struct, frozen=True):
    """All that a verdict rests on, besides the call itself.

    `rules` are the layers from the baseline to the agent, in order; `narrow` lists may only make stricter;
    `flags` turn ask into allow for what they name, `sandbox_passes` for what the system's sandbox holds.
    `checks_pass`: the workspace is trusted, so its check after edits has a standing allow. `strangers_pass`: a program
    that nobody knows needs no rule that names it.
    """

    rules: tuple[Rule, ...] = BASELINE
    restrictions: tuple[tuple[Rule, ...], ...] = ()
    profile: Profile = "balanced"
    whitelist: tuple[str, ...] = ()
    flags: tuple[Rule, ...] = ()
    interactive: bool = True
    allow_sandboxed: bool = False
    allow_checks: bool = False
    allow_unknown_programs: bool = False


def evaluate_permission(
    permission: Permission,
    policy: Policy,
    *,
    origin: CallOrigin = "model",
    grants: Sequence[Rule] = (),
    restrictions: Sequence[Rule] = (),
) -> Verdict:
    """What the policy says to a permission: the strictest over its needs."""
    ways = [_evaluate_need(need, policy, origin, grants, restrictions) for need in permission.needs]
    steps = max(
        ways, key=lambda way: STRICTNESS[way[-1].action], default=(VerdictStep("rules", "allow", "needs nothing"),)
    )
    return Verdict(steps[-1].action, steps, once_only=permission.dangerous)


def needs_to_approve(
    permission: Permission,
    policy: Policy,
    *,
    origin: CallOrigin = "model",
    grants: Sequence[Rule] = (),
    restrictions: Sequence[Rule] = (),
) -> tuple[Need, ...]:
    """The needs that the policy does not allow by itself: only for these is anybody's answer wanted."""
    ways = [(need, _evaluate_need(need, policy, origin, grants, restrictions)) for need in permission.needs]
    return tuple(need for need, steps in ways if steps[-1].action != "allow")


def _evaluate_need(
    need: Need, policy: Policy, origin: CallOrigin, grants: Sequence[Rule], restrictions: Sequence[Rule]
) -> tuple[VerdictStep, ...]:
    ruled = _apply_rules(need, policy, origin, grants, restrictions)
    profiled = _apply_profile(need, policy, ruled.action)
    asked = _apply_origin(origin, profiled.action)
    voucher = _exemption(need, policy, origin, grants) if need.danger == "stranger" else ""
    guarded = _apply_danger(need, asked.action, voucher)
    attended = _apply_interactivity(need, policy, guarded.action)
    return (ruled, profiled, asked, guarded, attended)


def _describe_need(need: Need) -> str:
    return f"{need.key} {need.subject}".strip()


def _apply_rules(
    need: Need, policy: Policy, origin: CallOrigin, grants: Sequence[Rule], restrictions: Sequence[Rule]
) -> VerdictStep:
    rule = last_match([*policy.rules, *grants], need)
    action: PolicyAction = rule.action if rule else "ask"
    why = _describe_rule(rule) if rule else "no rule speaks of it"
    if action == "ask" and origin == "validation" and policy.allow_checks:
        action, why = "allow", "the check of a trusted workspace"
    for layer in (*policy.restrictions, restrictions):
        found = last_match(layer, need)
        if found and STRICTNESS[found.action] > STRICTNESS[action]:
            action, why = found.action, _describe_rule(found)
    return VerdictStep("rules", action, f"{_describe_need(need)}: {why}")


def _describe_rule(rule: Rule) -> str:
    return f'rule {rule.key} "{rule.pattern}" {rule.action} ({rule.origin})'


def _apply_profile(need: Need, policy: Policy, action: PolicyAction) -> VerdictStep:
    name = "profile and flags"
    paranoid = policy.profile == "paranoid"
    if action == "deny" or (action == "allow" and not paranoid):
        return VerdictStep(name, action)
    flag = last_match(policy.flags, need)
    if flag and flag.action == "allow":
        return VerdictStep(name, "allow", f"{flag.origin} allows {_describe_need(need)}")
    if paranoid:
        return VerdictStep(name, "ask", "paranoid asks for every tool")
    if policy.allow_sandboxed and need.sandboxed:
        return VerdictStep(name, "allow", "the sandbox holds it")
    if policy.profile == "god_mode":
        return VerdictStep(name, "allow", "god_mode")
    if policy.profile == "balanced" and need.key == "bash" and _is_whitelisted(need.subject, policy.whitelist):
        return VerdictStep(name, "allow", "on the shell whitelist")
    return VerdictStep(name, action)


def _is_whitelisted(command: str, whitelist: Sequence[str]) -> bool:
    return any(matches(f"{prefix} *", command) for prefix in whitelist)


def _apply_origin(origin: CallOrigin, action: PolicyAction) -> VerdictStep:
    if origin == "person" and action == "ask":
        return VerdictStep("who asks", "allow", "you typed it yourself")
    return VerdictStep("who asks", action)


def _exemption(need: Need, policy: Policy, origin: CallOrigin, grants: Sequence[Rule]) -> str:
    """Who or what answers for a program that nobody knows; empty when nobody does."""
    if need.sandboxed:
        return "the sandbox holds it"
    if origin == "person":
        return "you typed it yourself"
    if origin == "validation" and policy.allow_checks:
        return "the check of a trusted workspace"
    if policy.profile == "god_mode":
        return "god_mode"
    if policy.allow_unknown_programs:
        return "it may pass here"
    if _is_whitelisted(need.subject, policy.whitelist):
        return "on the shell whitelist"
    rules = (*policy.rules, *grants, *policy.flags)
    return next((_describe_rule(rule) for rule in reversed(rules) if names_program(rule, need)), "")


def _apply_danger(need: Need, action: PolicyAction, exemption: str) -> VerdictStep:
    if need.danger == "deny":
        return VerdictStep("guards", "deny", need.reason)
    if exemption:
        return VerdictStep("guards", action, f"{need.reason}, but {exemption}" if action == "allow" else need.reason)
    if need.danger == "ordinary":
        return VerdictStep("guards", action)
    return VerdictStep("guards", "ask" if action == "allow" else action, need.reason)


def _apply_interactivity(need: Need, policy: Policy, action: PolicyAction) -> VerdictStep:
    if action != "ask" or policy.interactive:
        return VerdictStep("nobody home", action)
    why = f"{_describe_need(need)} needs a person's consent and nobody can be asked here"
    if need.danger == "confirm":
        return VerdictStep("nobody home", "deny", f"{why}: {need.reason}")
    return VerdictStep(
        "nobody home", "deny", f"{why}; --allow '{need.key}:{need.rule_pattern or need.subject}' would allow it"
    )
