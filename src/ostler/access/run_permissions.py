"""The one-line summary of what a non-interactive run is allowed to do, computed from the policy."""

from collections.abc import Mapping

from ostler.access.active_agent import ActiveAgent
from ostler.access.session_policy import make_policy, mcp_prefixes
from ostler.core.permission import Need, Permission
from ostler.knowledge.agent_definition import AgentDefinition
from ostler.knowledge.agent_loader import DEFAULT_AGENT
from ostler.policy.permission_rules import parse_flag
from ostler.policy.verdict import Policy, evaluate_permission
from ostler.settings.effective import Settings
from ostler.settings.run_options import RunOptions
from ostler.workspace.session_workspace import SessionShell

ANY_FILE, ANY_COMMAND, OUTSIDE_FILE = "any-file", "any-command", "/any-file"
WRITE_TOOLS = ("write", "edit", "patch")


def own_tools_note(agent: str, *, ephemeral: bool) -> str:
    """Return the warning that an external agent also uses tools that Ostler does not control."""
    undo = "cannot be undone (--ephemeral)" if ephemeral else "can be undone with `ostler undo`"
    return f"{agent} acts by itself: Ostler cannot restrict its own tools. What they change in this folder {undo}."


def describe_permissions(
    settings: Settings,
    options: RunOptions,
    agents: Mapping[str, AgentDefinition],
    agent: str = DEFAULT_AGENT,
    *,
    external_agent: str = "",
    has_shell: bool = True,
) -> str:
    """Return the summary, computed for an arbitrary file and command with the given flags and agent.

    For an external agent these are only the permissions of what it requests from Ostler. With `has_shell` false it
    cannot run commands.
    """
    sandbox = settings.config.security.sandbox
    policy = make_policy(settings, options, interactive=False)
    active_agent = ActiveAgent(agents, policy, options, SessionShell("", writable=options.write, sandbox=sandbox))
    active_agent.set_option("agent", agent)
    allowed = [
        *_file_permissions(active_agent),
        *(_command_permissions(active_agent, options, sandboxed=sandbox != "off") if has_shell else ()),
        *(f"--allow {rule}" for rule in options.allow if _is_flag_allowed(active_agent.policy(), rule, settings)),
    ]
    trusted = " · project settings trusted" if options.trust else ""
    subject = "allowed" if agent == DEFAULT_AGENT else f"allowed for {agent}"
    if external_agent:
        subject = f"allowed if {external_agent} asks"
    return f"{subject}: {'; '.join(allowed) or 'nothing (reads, changes and commands are denied)'}{trusted}"


def _file_permissions(active_agent: ActiveAgent) -> list[str]:
    policy = active_agent.policy()
    reads = active_agent.allows_tool("read") and _is_allowed(policy, Need("read", ANY_FILE))
    writes = any(map(active_agent.allows_tool, WRITE_TOOLS)) and _is_allowed(policy, Need("write", ANY_FILE))
    if reads and _is_allowed(policy, Need("external_directory", OUTSIDE_FILE)):
        return ["read anywhere", *(["change the workspace"] if writes else [])]
    verbs = " and ".join(verb for verb, allowed in (("read", reads), ("change", writes)) if allowed)
    return [f"{verbs} the workspace"] if verbs else []


def _command_permissions(active_agent: ActiveAgent, options: RunOptions, *, sandboxed: bool) -> list[str]:
    allowed = active_agent.allows_tool("bash") and _is_allowed(
        active_agent.policy(), Need("bash", ANY_COMMAND, sandboxed=sandboxed)
    )
    if not allowed:
        return []
    read_only = "" if options.write and not active_agent.read_only else ", read-only"
    return [f"run commands in the sandbox{read_only}" if sandboxed else "run commands, without a sandbox"]


def _is_flag_allowed(policy: Policy, flag: str, settings: Settings) -> bool:
    """Return whether the agent's policy allows what the flag allows."""
    rule = parse_flag(flag, servers=mcp_prefixes(settings))
    return _is_allowed(policy, Need(rule.key, rule.pattern))


def _is_allowed(policy: Policy, need: Need) -> bool:
    return evaluate_permission(Permission("", (need,)), policy).action == "allow"
