"""Explains a verdict: the same parse, permission and policy as a real call, and nothing is run."""

import msgspec

from ostler.app.run_options import RunOptions
from ostler.app.session_manager import project_grants, workspace_path
from ostler.app.session_policy import make_policy
from ostler.app.session_workspace import make_workspace
from ostler.app.tool_host import make_tool_host
from ostler.app.trusted_settings import load_settings
from ostler.core.permission import Need, Permission, PolicyAction, Rule, Verdict
from ostler.core.tools import ToolCall
from ostler.policy.permission_rules import last_match
from ostler.policy.presets import BASELINE
from ostler.policy.verdict import Policy, evaluate_permission, needs_to_approve

Rules = tuple[Rule, ...]


class Explanation(msgspec.Struct, frozen=True):
    """The verdict, and the lines that tell how it was reached."""

    action: PolicyAction
    lines: list[str]


async def explain(options: RunOptions, tool: str, arguments: dict[str, object], *, interactive: bool) -> Explanation:
    """What the policy would say to a call."""
    cwd = workspace_path(options.cwd)
    settings = load_settings(cwd, trust=options.trust)
    policy = make_policy(settings, options, interactive=interactive)
    workspace = make_workspace(cwd, settings, options, interactive=interactive)
    try:
        permission = await make_tool_host(workspace, settings).permission(ToolCall("explain", tool, arguments))
    finally:
        await workspace.aclose()
    grants = tuple(project_grants(cwd).rules())
    said = evaluate_permission(permission, policy, grants=grants)
    return Explanation(said.action, list(_verdict_lines(permission, said, policy, grants)))


def _verdict_lines(permission: Permission, outcome: Verdict, policy: Policy, standing_rules: Rules) -> list[str]:
    lines = [
        f"{outcome.action}{', once only' if outcome.action == 'ask' and outcome.once_only else ''}: {permission.title}",
        "",
    ]
    for need in permission.needs:
        way = evaluate_permission(Permission("", (need,)), policy, grants=standing_rules)
        lines.append(f"  {need.key} {need.subject}".rstrip())
        lines += [f"    {step.name:<18} {step.action:<6} {step.reason}".rstrip() for step in way.steps]
    return lines + _remedy(permission, outcome, policy, standing_rules)


def _remedy(permission: Permission, outcome: Verdict, policy: Policy, standing_rules: Rules) -> list[str]:
    """What would allow it, where anything could."""
    if outcome.action == "allow":
        return []
    if any(need.danger == "deny" for need in permission.needs):
        return ["", "Nothing allows this."]
    wanted = needs_to_approve(permission, policy, grants=standing_rules)
    denied = [need for need in wanted if _rule_action(need, policy, standing_rules) == "deny"]
    if not all(_is_lifted_by_yolo(need, policy) for need in denied):
        return ["", "No flag lifts a rule that denies: only a change of that rule would allow it."]
    if outcome.once_only:
        return ["", "A person can allow it, once, when asked."]
    rules = {f"--allow '{need.key}:{need.rule_pattern or need.subject}'" for need in wanted if need not in denied}
    return ["", "This would allow it: " + " ".join([*sorted(rules), *(["--yolo"] if denied else [])])]


def _rule_action(need: Need, policy: Policy, standing_rules: Rules) -> PolicyAction:
    """What the rules alone say."""
    return evaluate_permission(Permission("", (need,)), policy, grants=standing_rules).steps[0].action


def _is_lifted_by_yolo(need: Need, policy: Policy) -> bool:
    """Whether it is our own rule that keeps reading inside, and nobody's besides."""
    narrow = (rule for layer in policy.restrictions for rule in layer)
    return need.key == "external_directory" and last_match([*policy.rules, *narrow], need) in BASELINE
