"""What a run without a person may do, in one line: the policy is asked, so that the line cannot differ from it."""

from collections.abc import Mapping

from ostler.app.agents import AgentChoice
from ostler.app.grounds import Shell
from ostler.app.options import RunOptions
from ostler.app.policies import make_policy
from ostler.knowledge.agent import Agent
from ostler.knowledge.agents import DEFAULT
from ostler.policy.rules import parse_flag
from ostler.policy.verdict import Policy, verdict
from ostler.settings.effective import Settings
from ostler.vocabulary.permission import Need, Permission

ANY_FILE, ANY_COMMAND, ELSEWHERE = "any-file", "any-command", "/any-file"
WRITERS = ("write", "edit", "patch")


def may_told(settings: Settings, options: RunOptions, agents: Mapping[str, Agent], agent: str = DEFAULT) -> str:
    """As the flags, the profile, the rules and the agent have it for what nobody named in particular."""
    sandbox = settings.config.security.sandbox
    policy = make_policy(settings, options, attended=False)
    choice = AgentChoice(agents, policy, options, Shell("", writable=options.write, sandbox=sandbox))
    choice.take(agent)
    may = [*_files(choice), *_commands(choice, options, sandboxed=sandbox != "off")]
    named = [f"--allow {rule}" for rule in options.allow if _named_passes(choice.policy(), rule)]
    trusted = ["trusts this project's settings"] if options.trust else []
    whoever = "may" if agent == DEFAULT else f"{agent} may"
    return f"{whoever}: {'; '.join([*may, *named] or ['nothing by itself'])}{''.join(f' · {told}' for told in trusted)}"


def _files(choice: AgentChoice) -> list[str]:
    policy = choice.policy()
    reads = choice.offers("read") and _passes(policy, Need("read", ANY_FILE))
    writes = any(map(choice.offers, WRITERS)) and _passes(policy, Need("write", ANY_FILE))
    if reads and _passes(policy, Need("external_directory", ELSEWHERE)):
        return ["read anywhere", *(["change the workspace"] if writes else [])]
    words = " and ".join(word for word, passes in (("read", reads), ("change", writes)) if passes)
    return [f"{words} the workspace"] if words else []


def _commands(choice: AgentChoice, options: RunOptions, *, sandboxed: bool) -> list[str]:
    passes = choice.offers("bash") and _passes(choice.policy(), Need("bash", ANY_COMMAND, confined=sandboxed))
    if not passes:
        return []
    held = "" if options.write and not choice.read_only else ", where they change nothing"
    return [f"run commands in the sandbox{held}" if sandboxed else "run commands, without a sandbox"]


def _named_passes(policy: Policy, flag: str) -> bool:
    """Whether the agent leaves what a flag allows."""
    rule = parse_flag(flag)
    return _passes(policy, Need(rule.key, rule.pattern))


def _passes(policy: Policy, need: Need) -> bool:
    return verdict(Permission("", (need,)), policy).action == "allow"
