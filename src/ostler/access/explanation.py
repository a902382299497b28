"""Explains a permission verdict, for `ostler permissions explain`."""

import msgspec

from ostler.core.permission import Need, Permission, PolicyAction, Rule, Verdict
from ostler.policy.permission_rules import allow_flag, last_match
from ostler.policy.presets import BASELINE
from ostler.policy.shell import analyse
from ostler.policy.verdict import Policy, evaluate_permission, evaluate_read_only, needs_to_approve
from ostler.settings.schema import SecurityConfig

Rules = tuple[Rule, ...]


class Explanation(msgspec.Struct, frozen=True):
    """The verdict and the lines that explain it."""

    action: PolicyAction
    lines: list[str]


def explain(permission: Permission, policy: Policy, grants: Rules, *, danger_source: str = "") -> Explanation:
    """Evaluate a permission and explain the verdict; `grants` are the standing rules of the user."""
    verdict = evaluate_permission(permission, policy, grants=grants)
    if verdict.action == "ask" and (confined := evaluate_read_only(permission, policy, grants=grants)):
        verdict, policy = confined, msgspec.structs.replace(policy, allow_sandboxed_by_default=True)
        permission = msgspec.structs.replace(permission, title=f"{permission.title}, with the workspace read-only")
    lines = _verdict_lines(permission, verdict, policy, grants)
    if danger_source:
        lines += ["", f"Source of the danger check: {danger_source}"]
    return Explanation(verdict.action, lines + _remedy(permission, verdict, policy, grants))


def find_danger_source(command: str, cwd: str, security: SecurityConfig) -> str:
    """Return the row or function that makes the danger check flag a shell command, or an empty string."""
    analysis = analyse(
        command,
        cwd=cwd,
        danger_patterns=security.danger_patterns,
        blacklist_patterns=security.blacklist_patterns,
    )
    return analysis.source


def _verdict_lines(permission: Permission, outcome: Verdict, policy: Policy, standing_rules: Rules) -> list[str]:
    lines = [
        f"{outcome.action}{' every time' if outcome.action == 'ask' and outcome.once_only else ''}: {permission.title}",
        "",
    ]
    for need in permission.needs:
        verdict = evaluate_permission(Permission("", (need,)), policy, grants=standing_rules)
        lines.append(f"  {need.key} {need.subject}".rstrip())
        lines += [f"    {step.name:<18} {step.action:<6} {step.reason}".rstrip() for step in verdict.steps]
    return lines


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
    rules = {allow_flag(need) for need in needs if need not in denied}
    return ["", "To allow it: " + " ".join([*sorted(rules), *(["--yolo"] if denied else [])])]


def _rule_action(need: Need, policy: Policy, standing_rules: Rules) -> PolicyAction:
    """Return the action of the rules alone."""
    return evaluate_permission(Permission("", (need,)), policy, grants=standing_rules).steps[0].action


def _is_lifted_by_yolo(need: Need, policy: Policy) -> bool:
    """Return whether only the baseline denies a read outside the workspace, which --yolo lifts."""
    restrictions = (rule for layer in policy.restrictions for rule in layer)
    return need.key == "external_directory" and last_match([*policy.rules, *restrictions], need) in BASELINE
