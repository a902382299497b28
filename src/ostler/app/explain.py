"""Explains a verdict: the same parse, permission and policy as a real call, and nothing is run."""

import msgspec

from ostler.app.grounds import make_ground
from ostler.app.house import project_grants, workspace
from ostler.app.options import RunOptions
from ostler.app.policies import make_policy
from ostler.app.tools import make_tools
from ostler.app.trusting import load_settings
from ostler.policy.presets import BASELINE
from ostler.policy.rules import last_match
from ostler.policy.verdict import Policy, unsettled, verdict
from ostler.vocabulary.permission import Action, Need, Permission, Rule, Verdict
from ostler.vocabulary.tools import ToolCall

Grants = tuple[Rule, ...]


class Explained(msgspec.Struct, frozen=True):
    """The verdict, and the lines that tell how it was reached."""

    action: Action
    lines: list[str]


async def explain(options: RunOptions, tool: str, arguments: dict[str, object], *, attended: bool) -> Explained:
    """What the policy would say to a call."""
    cwd = workspace(options.cwd)
    settings = load_settings(cwd, trust=options.trust)
    policy = make_policy(settings, options, attended=attended)
    ground = make_ground(cwd, settings, options, attended=attended)
    try:
        permission = await make_tools(ground, settings).permission(ToolCall("explain", tool, arguments))
    finally:
        await ground.aclose()
    grants = tuple(project_grants(cwd).rules())
    said = verdict(permission, policy, grants=grants)
    return Explained(said.action, list(_told(permission, said, policy, grants)))


def _told(permission: Permission, said: Verdict, policy: Policy, grants: Grants) -> list[str]:
    lines = [f"{said.action}{', once only' if said.action == 'ask' and said.once_only else ''}: {permission.title}", ""]
    for need in permission.needs:
        way = verdict(Permission("", (need,)), policy, grants=grants)
        lines.append(f"  {need.key} {need.subject}".rstrip())
        lines += [f"    {step.name:<18} {step.action:<6} {step.why}".rstrip() for step in way.steps]
    return lines + _remedy(permission, said, policy, grants)


def _remedy(permission: Permission, said: Verdict, policy: Policy, grants: Grants) -> list[str]:
    """What would allow it, where anything could."""
    if said.action == "allow":
        return []
    if any(need.danger == "deny" for need in permission.needs):
        return ["", "Nothing allows this."]
    wanted = unsettled(permission, policy, grants=grants)
    denied = [need for need in wanted if _ruled(need, policy, grants) == "deny"]
    if not all(_lifted_by_yolo(need, policy) for need in denied):
        return ["", "No flag lifts a rule that denies: only a change of that rule would allow it."]
    if said.once_only:
        return ["", "A person can allow it, once, when asked."]
    rules = {f"--allow '{need.key}:{need.always or need.subject}'" for need in wanted if need not in denied}
    return ["", "This would allow it: " + " ".join([*sorted(rules), *(["--yolo"] if denied else [])])]


def _ruled(need: Need, policy: Policy, grants: Grants) -> Action:
    """What the rules alone say."""
    return verdict(Permission("", (need,)), policy, grants=grants).steps[0].action


def _lifted_by_yolo(need: Need, policy: Policy) -> bool:
    """Whether it is our own rule that keeps reading inside, and nobody's besides."""
    narrow = (rule for layer in policy.narrow for rule in layer)
    return need.key == "external_directory" and last_match([*policy.rules, *narrow], need) in BASELINE
