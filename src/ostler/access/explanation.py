"""Explains a permission verdict, for `ostler permissions explain`."""

import msgspec

from ostler.core.permission import Need, Permission, PolicyAction, Rule, Verdict
from ostler.policy.permission_rules import last_match
from ostler.policy.presets import BASELINE
from ostler.policy.verdict import Policy, evaluate_permission, needs_to_approve

Rules = tuple[Rule, ...]


class Explanation(msgspec.Struct, frozen=True):
    """The verdict and the lines that explain it."""

    action: PolicyAction
    lines: list[str]


def explain(permission: Permission, policy: Policy, grants: Rules) -> Explanation:
    """Evaluate a permission and explain the verdict; `grants` are the standing rules of the user."""
    verdict = evaluate_permission(permission, policy, grants=grants)
    return Explanation(verdict.action, _verdict_lines(permission, verdict, policy, grants))


def _verdict_lines(permission: Permission, outcome: Verdict, policy: Policy, standing_rules: Rules) -> list[str]:
    lines = [
        f"{outcome.action}{' every time' if outcome.action == 'ask' and outcome.once_only else ''}: {permission.title}",
        "",
    ]
    for need in permission.needs:
        verdict = evaluate_permission(Permission("", (need,)), policy, grants=standing_rules)
        lines.append(f"  {need.key} {need.subject}".rstrip())
        lines += [f"    {step.name:<18} {step.action:<6} {step.reason}".rstrip() for step in verdict.steps]
    return lines + _remedy(permission, outcome, policy, standing_rules)


def _remedy(permission: Permission, outcome: Verdict, policy: Policy, standing_rules: Rules) -> list[str]:
    """Return lines that say what would allow the call."""
    if outcome.action == "allow":
        return []
    if any(need.danger == "deny" for need in permission.needs):
        return ["", "Always denied: no rule, flag or approval can allow this."]
    needs = needs_to_approve(permission, policy, grants=standing_rules)
    denied = [need for need in needs if _rule_action(need, policy, standing_rules) == "deny"]
    if not all(_is_lifted_by_yolo(need, policy) for need in denied):
        return ["", "A rule denies this. Change that rule; flags do not override it."]
    if outcome.once_only:
        return ["", "Needs interactive approval for each call; no flag or rule can allow it."]
    rules = {f"--allow '{need.key}:{need.rule_pattern or need.subject}'" for need in needs if need not in denied}
    return ["", "To allow it: " + " ".join([*sorted(rules), *(["--yolo"] if denied else [])])]


def _rule_action(need: Need, policy: Policy, standing_rules: Rules) -> PolicyAction:
    """Return the action of the rules alone."""
    return evaluate_permission(Permission("", (need,)), policy, grants=standing_rules).steps[0].action


def _is_lifted_by_yolo(need: Need, policy: Policy) -> bool:
    """Return whether only the baseline denies a read outside the workspace, which --yolo lifts."""
    restrictions = (rule for layer in policy.restrictions for rule in layer)
    return need.key == "external_directory" and last_match([*policy.rules, *restrictions], need) in BASELINE
