"""Evaluates a permission against the policy in five steps; a deny is never overridden."""

from collections.abc import Sequence
from typing import Final

import msgspec

from ostler.core.permission import UNKNOWN_PROGRAM, Need, Permission, PolicyAction, Rule, Verdict, VerdictStep
from ostler.core.sessions import Profile
from ostler.core.tools import CallOrigin
from ostler.policy.permission_rules import STRICTNESS, allow_flag, last_match, names_program
from ostler.policy.presets import BASELINE, is_built_in
from ostler.policy.profiles import PROFILES
from ostler.policy.wildcard import matches

# The names of the steps, as `ostler permissions explain` shows them.
RULES_STEP: Final = "rules"
PROFILE_STEP: Final = "profile and flags"
ORIGIN_STEP: Final = "origin of the call"
DANGER_STEP: Final = "danger check"
NON_INTERACTIVE_STEP: Final = "non-interactive"


class Policy(msgspec.Struct, frozen=True):
    """The settings that decide about permissions.

    `rules` are ordered from the baseline to the agent; `restrictions` can only make the result stricter. `flags` turn
    ask into allow for what they match, `allow_sandboxed` for commands that run in the sandbox, and
    `allow_sandboxed_by_default` for those without an ask rule of the user. `allow_checks` is set if the workspace is
    trusted: its check after edits runs without asking. With `allow_unknown_programs`, unknown programs do not need a
    rule that names them.
    """

    rules: tuple[Rule, ...] = BASELINE
    restrictions: tuple[tuple[Rule, ...], ...] = ()
    profile: Profile = "balanced"
    whitelist: tuple[str, ...] = ()
    flags: tuple[Rule, ...] = ()
    interactive: bool = True
    allow_sandboxed: bool = False
    allow_sandboxed_by_default: bool = False
    allow_checks: bool = False
    allow_unknown_programs: bool = False


def evaluate_permission(
    permission: Permission,
    policy: Policy,
    *,
    origin: CallOrigin = "model",
    grants: Sequence[Rule] = (),
    restrictions: Sequence[Sequence[Rule]] = (),
) -> Verdict:
    """Evaluate every need of a permission and return the strictest verdict."""
    evaluations = [_evaluate_need(need, policy, origin, grants, restrictions) for need in permission.needs]
    steps = max(
        evaluations,
        key=lambda steps: STRICTNESS[steps[-1].action],
        default=(VerdictStep(RULES_STEP, "allow", "no permission needed"),),
    )
    return Verdict(steps[-1].action, steps, once_only=permission.dangerous)


def evaluate_read_only(
    permission: Permission,
    policy: Policy,
    *,
    origin: CallOrigin = "model",
    grants: Sequence[Rule] = (),
    restrictions: Sequence[Sequence[Rule]] = (),
) -> Verdict | None:
    """Return the verdict that allows a command with the workspace read-only, as in a non-interactive run, or None."""
    if not permission.may_run_read_only:
        return None
    confined = msgspec.structs.replace(policy, allow_sandboxed_by_default=True)
    permission = msgspec.structs.replace(permission, needs=permission.read_only_needs or permission.needs)
    verdict = evaluate_permission(permission, confined, origin=origin, grants=grants, restrictions=restrictions)
    return verdict if verdict.action == "allow" else None


def needs_to_approve(
    permission: Permission,
    policy: Policy,
    *,
    origin: CallOrigin = "model",
    grants: Sequence[Rule] = (),
    restrictions: Sequence[Sequence[Rule]] = (),
) -> tuple[Need, ...]:
    """Return the needs that the policy does not allow; the user is asked only for these."""
    evaluations = [(need, _evaluate_need(need, policy, origin, grants, restrictions)) for need in permission.needs]
    return tuple(need for need, steps in evaluations if steps[-1].action != "allow")


def _evaluate_need(
    need: Need, policy: Policy, origin: CallOrigin, grants: Sequence[Rule], restrictions: Sequence[Sequence[Rule]]
) -> tuple[VerdictStep, ...]:
    by_rules, is_default = _apply_rules(need, policy, origin, grants, restrictions)
    by_profile = _apply_profile(need, policy, by_rules.action, is_default=is_default)
    by_origin = _apply_origin(origin, by_profile.action)
    exemption = _exemption(need, policy, origin, grants) if need.danger == UNKNOWN_PROGRAM else ""
    by_danger = _apply_danger(need, by_origin.action, exemption)
    by_interactivity = _apply_interactivity(need, policy, by_danger.action)
    return (by_rules, by_profile, by_origin, by_danger, by_interactivity)


def _describe_need(need: Need) -> str:
    return f"{need.key} {need.subject}".strip()


def _apply_rules(
    need: Need, policy: Policy, origin: CallOrigin, grants: Sequence[Rule], restrictions: Sequence[Sequence[Rule]]
) -> tuple[VerdictStep, bool]:
    """Return the result of the rules, and whether only built-in rules ask, which the sandbox can replace."""
    rule, grant = last_match(policy.rules, need), last_match(grants, need)
    if grant and not (rule and rule.action == "deny"):
        rule = grant
    action: PolicyAction = rule.action if rule else "allow" if need.implied else "ask"
    reason = _describe_rule(rule) if rule else "no rule matches"
    if action == "ask" and origin == "validation" and policy.allow_checks:
        action, reason = "allow", "check of a trusted workspace"
    is_default = rule is None or is_built_in(rule)
    for layer in (*policy.restrictions, *restrictions):
        stricter = last_match(layer, need)
        if stricter is None or STRICTNESS[stricter.action] < STRICTNESS[action]:
            continue
        if STRICTNESS[stricter.action] > STRICTNESS[action] or (is_default and not is_built_in(stricter)):
            action, reason, is_default = stricter.action, _describe_rule(stricter), is_built_in(stricter)
    return VerdictStep(RULES_STEP, action, f"{_describe_need(need)}: {reason}"), is_default


def _describe_rule(rule: Rule) -> str:
    return f'rule {rule.key} "{rule.pattern}" {rule.action} ({rule.origin})'


def _apply_profile(need: Need, policy: Policy, action: PolicyAction, *, is_default: bool) -> VerdictStep:
    profile = PROFILES[policy.profile]
    asks = last_match(profile.asks, need)
    if action == "deny" or (action == "allow" and not asks):
        return VerdictStep(PROFILE_STEP, action)
    flag = last_match(policy.flags, need)
    if flag and flag.action == "allow":
        return VerdictStep(PROFILE_STEP, "allow", f"{flag.origin} allows {_describe_need(need)}")
    if asks:
        return VerdictStep(PROFILE_STEP, "ask", asks.origin)
    if need.sandboxed and (policy.allow_sandboxed or (policy.allow_sandboxed_by_default and is_default)):
        return VerdictStep(PROFILE_STEP, "allow", "it runs in the sandbox")
    if need.sandboxed and need.read_only and is_default:
        return VerdictStep(PROFILE_STEP, "allow", "it only looks, and the workspace is read-only in its sandbox")
    if allows := last_match(profile.allows, need):
        return VerdictStep(PROFILE_STEP, "allow", allows.origin)
    if profile.uses_whitelist and need.key == "bash" and _is_whitelisted(need.subject, policy.whitelist):
        return VerdictStep(PROFILE_STEP, "allow", "on the shell whitelist")
    return VerdictStep(PROFILE_STEP, action)


def _is_whitelisted(command: str, whitelist: Sequence[str]) -> bool:
    return any(matches(f"{prefix} *", command) for prefix in whitelist)


def _apply_origin(origin: CallOrigin, action: PolicyAction) -> VerdictStep:
    if origin == "person" and action == "ask":
        return VerdictStep(ORIGIN_STEP, "allow", "you typed it")
    return VerdictStep(ORIGIN_STEP, action)


def _exemption(need: Need, policy: Policy, origin: CallOrigin, grants: Sequence[Rule]) -> str:
    """Return why an unknown program is treated like a known one, or an empty string."""
    if need.sandboxed:
        return "it runs in the sandbox"
    if origin == "person":
        return "you typed it"
    if origin == "validation" and policy.allow_checks:
        return "check of a trusted workspace"
    if PROFILES[policy.profile].allows_unknown_programs:
        return policy.profile
    if policy.allow_unknown_programs:
        return "unknown programs are allowed here"
    if _is_whitelisted(need.subject, policy.whitelist):
        return "on the shell whitelist"
    rules = (*policy.rules, *grants, *policy.flags)
    return next((_describe_rule(rule) for rule in reversed(rules) if names_program(rule, need)), "")


def _apply_danger(need: Need, action: PolicyAction, exemption: str) -> VerdictStep:
    if need.danger == "deny":
        return VerdictStep(DANGER_STEP, "deny", need.reason)
    if exemption:
        return VerdictStep(DANGER_STEP, action, f"{need.reason}, but {exemption}" if action == "allow" else need.reason)
    if need.danger == "ordinary":
        return VerdictStep(DANGER_STEP, action)
    return VerdictStep(DANGER_STEP, "ask" if action == "allow" else action, need.reason)


def _apply_interactivity(need: Need, policy: Policy, action: PolicyAction) -> VerdictStep:
    if action != "ask" or policy.interactive:
        return VerdictStep(NON_INTERACTIVE_STEP, action)
    reason = f"{_describe_need(need)} needs approval, and this run is non-interactive"
    if need.danger == "confirm":
        return VerdictStep(NON_INTERACTIVE_STEP, "deny", f"{reason}: {need.reason}")
    return VerdictStep(
        NON_INTERACTIVE_STEP,
        "deny",
        f"{reason}; add {allow_flag(need)} to allow it",
    )
