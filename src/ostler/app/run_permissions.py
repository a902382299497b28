"""What a run without a person may do, in one line: the policy is asked, so that the line cannot differ from it."""

from collections.abc import Mapping

from ostler.app.active_agent import ActiveAgent
from ostler.app.run_options import RunOptions
from ostler.app.session_policy import make_policy
from ostler.app.session_workspace import SessionShell
from ostler.core.permission import Need, Permission
from ostler.knowledge.agent_definition import AgentDefinition
from ostler.knowledge.agent_loader import DEFAULT_AGENT
from ostler.policy.permission_rules import parse_flag
from ostler.policy.verdict import Policy, evaluate_permission
from ostler.settings.effective import Settings

ANY_FILE, ANY_COMMAND, OUTSIDE_FILE = "any-file", "any-command", "/any-file"
WRITE_TOOLS = ("write", "edit", "patch")


def describe_permissions(
    settings: Settings, options: RunOptions, agents: Mapping[str, AgentDefinition], agent: str = DEFAULT_AGENT
) -> str:
    """As the flags, the profile, the rules and the agent have it for what nobody named in particular."""
    sandbox = settings.config.security.sandbox
    policy = make_policy(settings, options, interactive=False)
    choice = ActiveAgent(agents, policy, options, SessionShell("", writable=options.write, sandbox=sandbox))
    choice.select(agent)
    may = [*_file_permissions(choice), *_command_permissions(choice, options, sandboxed=sandbox != "off")]
    named = [f"--allow {rule}" for rule in options.allow if _flag_is_allowed(choice.policy(), rule)]
    trusted = ["trusts this project's settings"] if options.trust else []
    whoever = "may" if agent == DEFAULT_AGENT else f"{agent} may"
    return f"{whoever}: {'; '.join([*may, *named] or ['nothing by itself'])}{''.join(f' · {told}' for told in trusted)}"


def _file_permissions(active_agent: ActiveAgent) -> list[str]:
    policy = active_agent.policy()
    reads = active_agent.allows_tool("read") and _is_allowed(policy, Need("read", ANY_FILE))
    writes = any(map(active_agent.allows_tool, WRITE_TOOLS)) and _is_allowed(policy, Need("write", ANY_FILE))
    if reads and _is_allowed(policy, Need("external_directory", OUTSIDE_FILE)):
        return ["read anywhere", *(["change the workspace"] if writes else [])]
    words = " and ".join(word for word, passes in (("read", reads), ("change", writes)) if passes)
    return [f"{words} the workspace"] if words else []


def _command_permissions(active_agent: ActiveAgent, options: RunOptions, *, sandboxed: bool) -> list[str]:
    passes = active_agent.allows_tool("bash") and _is_allowed(
        active_agent.policy(), Need("bash", ANY_COMMAND, sandboxed=sandboxed)
    )
    if not passes:
        return []
    held = "" if options.write and not active_agent.read_only else ", where they change nothing"
    return [f"run commands in the sandbox{held}" if sandboxed else "run commands, without a sandbox"]


def _flag_is_allowed(policy: Policy, flag: str) -> bool:
    """Whether the agent leaves what a flag allows."""
    rule = parse_flag(flag)
    return _is_allowed(policy, Need(rule.key, rule.pattern))


def _is_allowed(policy: Policy, need: Need) -> bool:
    return evaluate_permission(Permission("", (need,)), policy).action == "allow"
