"""Builds the policy of a session, and that of `ostler acp run`, from settings and flags."""

from collections.abc import Sequence
from pathlib import Path

from ostler.core.errors import UsageError
from ostler.core.permission import PolicyAction, Rule
from ostler.policy.permission_rules import parse_flag, parse_rules
from ostler.policy.presets import BASELINE, BASELINE_READING_ANYWHERE, WRITE_FLAG, YOLO_FLAG
from ostler.policy.verdict import Policy
from ostler.settings.config_files import read_config
from ostler.settings.effective import Settings
from ostler.settings.run_options import RunOptions

_WRITE_KEYS = ("edit", "patch", "delete", "write")


def make_policy(
    settings: Settings,
    options: RunOptions,
    directories: Sequence[str] = (),
    *,
    interactive: bool,
    is_elsewhere: bool = False,
) -> Policy:
    """Return a policy with the baseline, the rules of the settings layers in order, and the flags.

    `directories` can be read like the workspace, unless a rule of the user denies it. With `is_elsewhere` another
    machine asks for the calls: it may delete nothing, unless a rule of the user allows it.
    """
    security = settings.config.security
    baseline = (*(BASELINE_READING_ANYWHERE if options.yolo else BASELINE), *_directory_rules(directories))
    return Policy(
        rules=(*baseline, *_delete_rules(settings, is_elsewhere=is_elsewhere), *settings.rules()),
        restrictions=(tuple(settings.restricting_rules()),),
        profile=options.profile or security.profile,  # type: ignore[arg-type]  # validated by argparse
        whitelist=security.whitelist,
        flags=_flag_rules(options, settings),
        interactive=interactive,
        allow_sandboxed_by_default=not interactive,
        allow_checks=settings.trusted,
    )


def _directory_rules(directories: Sequence[str]) -> tuple[Rule, ...]:
    patterns = (pattern for folder in directories for pattern in (folder, f"{folder.rstrip('/')}/*"))
    return tuple(Rule("external_directory", pattern, "allow", "additional directories") for pattern in patterns)


def _delete_rules(settings: Settings, *, is_elsewhere: bool) -> tuple[Rule, ...]:
    if action := settings.config.security.delete:
        return (Rule("delete", "*", action, "security.delete"),)
    return (Rule("delete", "*", "deny", "a server may not delete"),) if is_elsewhere else ()


def _flag_rules(options: RunOptions, settings: Settings) -> tuple[Rule, ...]:
    flags = YOLO_FLAG if options.yolo else WRITE_FLAG if options.write else ()
    servers, later = mcp_prefixes(settings) if options.allow else (), options.later_servers
    allowed = (parse_flag(text, servers=servers, later_servers=later) for text in options.allow)
    return (*flags, *allowed)


def mcp_prefixes(settings: Settings) -> tuple[str, ...]:
    """Return the first parts of the names of MCP tools."""
    if not settings.config.mcp:
        return ()
    from ostler.mcp.tool_names import server_prefixes

    return tuple(server_prefixes(list(settings.config.mcp)).values())


def acp_policy(
    settings: Settings, *, write: bool, yolo: bool, directories: Sequence[str] = (), policy_file: str = ""
) -> Policy:
    """Return a policy that allows everything except edits without --write and outside paths without --yolo.

    Writes outside the workspace and dangerous calls are denied by the danger check, even if a rule allows them.
    """
    action: PolicyAction = "allow" if write or yolo else "deny"
    source = "--write" if write or yolo else "without --write"
    return Policy(
        rules=(
            Rule("*", "*", "allow", "acp run"),
            *(Rule(key, "*", action, source) for key in _WRITE_KEYS),
            Rule("external_directory", "*", "allow" if yolo else "deny", "--yolo" if yolo else "without --yolo"),
            *(Rule("external_directory", f"{folder}/*", "allow", "--add-dir") for folder in directories),
            *_read_rules(policy_file),
        ),
        restrictions=(tuple(settings.restricting_rules()),),
        interactive=False,
        allow_unknown_programs=True,
    )


def _read_rules(policy_file: str) -> tuple[Rule, ...]:
    """Read a file with rules in the form of the `permission` setting. Raises `UsageError`."""
    if not policy_file:
        return ()
    document = read_config(Path(policy_file))
    if document is None:
        raise UsageError(f"policy file {policy_file} not found")
    value = document.value
    value = value.get("permission", value) if isinstance(value, dict) else value
    if not isinstance(value, (dict, str)):
        raise UsageError(f"no rules in policy file {policy_file}", hint='write them as {"bash": {"git *": "allow"}}')
    return tuple(parse_rules(value, f"--policy {policy_file}"))
