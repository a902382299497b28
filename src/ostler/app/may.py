"""What a run without a person may do, in one line: the policy is asked, so that the line cannot differ from it."""

from ostler.app.options import RunOptions
from ostler.app.policies import make_policy
from ostler.policy.verdict import Policy, verdict
from ostler.settings.effective import Settings
from ostler.vocabulary.permission import Need, Permission

ANY_FILE, ANY_COMMAND, ELSEWHERE = "any-file", "any-command", "/any-file"


def may_told(settings: Settings, options: RunOptions) -> str:
    """As the flags, the profile and the rules have it for what nobody named in particular."""
    policy = make_policy(settings, options, attended=False)
    may = [*_files(policy), *_commands(policy, options, sandboxed=settings.config.security.sandbox != "off")]
    named = [f"--allow {rule}" for rule in options.allow]
    trusted = ["trusts this project's settings"] if options.trust else []
    return f"may: {'; '.join([*may, *named] or ['nothing by itself'])}{''.join(f' · {told}' for told in trusted)}"


def _files(policy: Policy) -> list[str]:
    reads, writes = _passes(policy, Need("read", ANY_FILE)), _passes(policy, Need("write", ANY_FILE))
    if reads and _passes(policy, Need("external_directory", ELSEWHERE)):
        return ["read anywhere", *(["change the workspace"] if writes else [])]
    words = " and ".join(word for word, passes in (("read", reads), ("change", writes)) if passes)
    return [f"{words} the workspace"] if words else []


def _commands(policy: Policy, options: RunOptions, *, sandboxed: bool) -> list[str]:
    if not _passes(policy, Need("bash", ANY_COMMAND, confined=sandboxed)):
        return []
    held = "" if options.write else ", where they change nothing"
    return [f"run commands in the sandbox{held}" if sandboxed else "run commands, without a sandbox"]


def _passes(policy: Policy, need: Need) -> bool:
    return verdict(Permission("", (need,)), policy).action == "allow"
